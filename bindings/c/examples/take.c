/* One ID of this machine's space "orders": its number, its text, its parts.
 *
 *     cc take.c -lringflake -o take && ./take
 */

#include <inttypes.h>
#include <stdio.h>

#include <ringflake.h>

int main(void)
{
    ringflake_generator *ids;
    ringflake_parts parts;
    char text[RINGFLAKE_TEXT_SIZE];
    uint64_t id;
    int failed = 0;

    if (ringflake_open_local("orders", &ids) != RINGFLAKE_OK) {
        fprintf(stderr, "%s\n", ringflake_last_error());
        return 1;
    }
    if (ringflake_take(ids, &id) == RINGFLAKE_OK &&
        ringflake_to_text(id, text, sizeof text) == RINGFLAKE_OK &&
        ringflake_inspect(ids, id, &parts) == RINGFLAKE_OK)
        printf("%" PRIu64 " %s, of node %" PRIu64 "\n", id, text, parts.node);
    else {
        fprintf(stderr, "%s\n", ringflake_last_error());
        failed = 1;
    }
    ringflake_close(ids);
    return failed;
}
