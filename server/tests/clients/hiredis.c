/* hiredis against a server of IDs: its replies, and that no ID comes twice.
 *
 *     hiredis HOST PORT SOCKET
 */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIPELINE = 1000, BATCH = 5, MOST = 8192 };

static long long ids[MOST];
static size_t count;

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "hiredis: %s\n", what);
        exit(1);
    }
}

static redisReply *reply_of_type(redisReply *reply, int type, const char *what)
{
    check(reply != NULL, "the connection broke");
    if (reply->type != type)
        fprintf(stderr, "hiredis: type %d: %s\n", reply->type, reply->str ? reply->str : "");
    check(reply->type == type, what);
    return reply;
}

static redisReply *ask(redisContext *client, int type, const char *command)
{
    return reply_of_type(redisCommand(client, command), type, command);
}

static void expect(redisContext *client, int type, const char *command, const char *text)
{
    redisReply *reply = ask(client, type, command);
    check(strstr(reply->str, text) != NULL, reply->str);
    freeReplyObject(reply);
}

static void keep(long long id)
{
    check(count < MOST, "too many IDs");
    ids[count++] = id;
}

static void keep_strings(const redisReply *array, size_t expected)
{
    check(array->elements == expected, "another number of IDs");
    for (size_t i = 0; i < expected; i++)
        keep(strtoll(array->element[i]->str, NULL, 10));
}

static void increment(redisContext *client)
{
    redisReply *reply = ask(client, REDIS_REPLY_INTEGER, "INCR hiredis");
    keep(reply->integer);
    freeReplyObject(reply);
}

static void take(redisContext *client)
{
    check(client != NULL && client->err == 0, "no connection");
    expect(client, REDIS_REPLY_STATUS, "PING", "PONG");
    increment(client);
    redisReply *reply = ask(client, REDIS_REPLY_ARRAY, "LPOP hiredis 5");
    keep_strings(reply, BATCH);
    freeReplyObject(reply);

    for (int i = 0; i < PIPELINE; i++)
        check(redisAppendCommand(client, "INCR %s", "hiredis") == REDIS_OK, "not queued");
    for (int i = 0; i < PIPELINE; i++) {
        void *next = NULL;
        check(redisGetReply(client, &next) == REDIS_OK, "the pipeline broke");
        reply = reply_of_type(next, REDIS_REPLY_INTEGER, "a reply of the pipeline");
        keep(reply->integer);
        freeReplyObject(reply);
    }

    expect(client, REDIS_REPLY_STATUS, "MULTI", "OK");
    expect(client, REDIS_REPLY_STATUS, "INCR hiredis", "QUEUED");
    expect(client, REDIS_REPLY_STATUS, "LPOP hiredis 5", "QUEUED");
    reply = ask(client, REDIS_REPLY_ARRAY, "EXEC");
    check(reply->elements == 2, "EXEC has two replies");
    keep(reply_of_type(reply->element[0], REDIS_REPLY_INTEGER, "INCR in EXEC")->integer);
    keep_strings(reply_of_type(reply->element[1], REDIS_REPLY_ARRAY, "LPOP in EXEC"), BATCH);
    freeReplyObject(reply);

    /* A transaction that is refused leaves a connection that works. */
    expect(client, REDIS_REPLY_STATUS, "MULTI", "OK");
    expect(client, REDIS_REPLY_STATUS, "INCR hiredis", "QUEUED");
    expect(client, REDIS_REPLY_ERROR, "GET x", "unknown command");
    expect(client, REDIS_REPLY_ERROR, "EXEC", "EXECABORT");
    expect(client, REDIS_REPLY_ERROR, "INCR app:orders", "resp.key-prefix = \"app:\"");
    increment(client);
    redisFree(client);
}

static int compare(const void *one, const void *other)
{
    long long a = *(const long long *)one, b = *(const long long *)other;
    return (a > b) - (a < b);
}

int main(int arguments, char **argument)
{
    check(arguments == 4, "usage: hiredis HOST PORT SOCKET");
    take(redisConnect(argument[1], atoi(argument[2])));
    take(redisConnectUnix(argument[3]));
    check(count == 2 * (1 + BATCH + PIPELINE + 1 + BATCH + 1), "another number of IDs");
    qsort(ids, count, sizeof ids[0], compare);
    for (size_t i = 1; i < count; i++)
        check(ids[i - 1] != ids[i], "an ID came twice");
    printf("hiredis %d.%d.%d: %zu IDs, no two alike\n", HIREDIS_MAJOR, HIREDIS_MINOR,
           HIREDIS_PATCH, count);
    return 0;
}
