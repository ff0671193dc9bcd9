/* The library from C and from C++: every function, four threads, and a forked child.
 *
 *     abi DIRECTORY IDS [no-child]
 */

#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ringflake.h"

#define THREADS 4
#define BATCH 100

static void fail(const char *what, int line)
{
    fprintf(stderr, "line %d: %s: %s: %s\n", line, what,
            ringflake_status_name(ringflake_last_status()), ringflake_last_error());
    exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

struct job {
    const ringflake_generator *ids;
    uint64_t *out;
    size_t count;
};

static void *take(void *argument)
{
    struct job *job = (struct job *)argument;
    size_t done = 0, taken;

    while (done < job->count / 2) {
        CHECK(ringflake_take(job->ids, &job->out[done]) == RINGFLAKE_OK);
        done++;
    }
    while (done < job->count) {
        size_t count = job->count - done < BATCH ? job->count - done : BATCH;
        CHECK(ringflake_take_batch(job->ids, &job->out[done], count, &taken) == RINGFLAKE_OK);
        CHECK(taken > 0 && taken <= count);
        done += taken;
    }
    /* Each thread has an error of its own. */
    CHECK(ringflake_last_status() == RINGFLAKE_OK);
    CHECK(ringflake_take(NULL, NULL) == RINGFLAKE_INVALID);
    CHECK(strcmp(ringflake_last_error(), "`id` is NULL") == 0);
    return NULL;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void check_distinct(uint64_t *ids, size_t count)
{
    size_t i;

    qsort(ids, count, sizeof *ids, compare);
    for (i = 1; i < count; i++)
        CHECK(ids[i - 1] != ids[i]);
}

/* Takes as many IDs in a child, and writes them to the pipe. */
static void in_child(ringflake_generator *parents, uint64_t *out, size_t count, int pipe)
{
    ringflake_generator *ids = NULL;
    struct job job = {NULL, out, count};
    const char *bytes = (const char *)out;
    size_t left = count * sizeof *out;
    uint64_t id;

    CHECK(ringflake_take(parents, &id) == RINGFLAKE_FORKED);
    CHECK(ringflake_reopen(parents, &ids) == RINGFLAKE_OK);
    ringflake_close(parents);
    job.ids = ids;
    while (job.count > 0) {
        CHECK(ringflake_take(ids, job.out) == RINGFLAKE_OK);
        job.out++;
        job.count--;
    }
    CHECK(ringflake_shutdown(ids, 10000) == RINGFLAKE_OK);
    while (left > 0) {
        ssize_t written = write(pipe, bytes, left);
        CHECK(written > 0);
        bytes += written;
        left -= (size_t)written;
    }
}

int main(int argc, char **argv)
{
    char config[4096], text[RINGFLAKE_TEXT_SIZE];
    ringflake_generator *ids = NULL;
    ringflake_stats stats;
    ringflake_parts parts;
    struct job jobs[THREADS];
    pthread_t threads[THREADS];
    size_t count, of_thread, workers, i;
    uint64_t *all, read_back;
    int ends[2], status;
    pid_t child = -1;
    FILE *pipe_end;

    CHECK(argc >= 3);
    workers = argc == 3 ? THREADS + 1 : THREADS;
    of_thread = (size_t)strtoul(argv[2], NULL, 10) / workers;
    count = of_thread * workers;
    all = (uint64_t *)malloc(count * sizeof *all);
    CHECK(all != NULL);

    CHECK(ringflake_open("local = orders\nwidth = positive", &ids) == RINGFLAKE_CONFIG);
    CHECK(ids == NULL && strstr(ringflake_last_error(), "`width`") != NULL);
    CHECK(ringflake_retry_after_ms() == -1);
    CHECK(ringflake_open_local("No Name", &ids) == RINGFLAKE_CONFIG);

    snprintf(config, sizeof config,
             "local = orders\n"
             "data-dir = %s\n"
             "best-effort = true\n"
             "layout = positive\n"
             "id-width = positive\n"
             "borrow-limit = 200s\n",
             argv[1]);
    CHECK(ringflake_open(config, &ids) == RINGFLAKE_OK);
    CHECK(ringflake_wait_ready(ids, 0) == RINGFLAKE_OK);

    /* The child takes as many as each thread, at the same time. */
    if (workers > THREADS) {
        CHECK(pipe(ends) == 0);
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            in_child(ids, all, of_thread, ends[1]);
            /* What the parent's threads held is out of reach here, and no leak. */
            _exit(0);
        }
        close(ends[1]);
    }
    for (i = 0; i < THREADS; i++) {
        jobs[i].ids = ids;
        jobs[i].out = all + i * of_thread;
        jobs[i].count = of_thread;
        CHECK(pthread_create(&threads[i], NULL, take, &jobs[i]) == 0);
    }
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    if (workers > THREADS) {
        pipe_end = fdopen(ends[0], "r");
        CHECK(pipe_end != NULL);
        CHECK(fread(all + THREADS * of_thread, sizeof *all, of_thread, pipe_end) == of_thread);
        fclose(pipe_end);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }

    CHECK(ringflake_to_text(all[0], text, sizeof text) == RINGFLAKE_OK);
    CHECK(ringflake_from_text(text, &read_back) == RINGFLAKE_OK && read_back == all[0]);
    CHECK(ringflake_from_text("W", &read_back) == RINGFLAKE_BAD_TEXT);
    CHECK(ringflake_to_text(UINT64_MAX, text, 4) == RINGFLAKE_TOO_SMALL);
    CHECK(ringflake_read_stats(ids, &stats, sizeof stats) == RINGFLAKE_OK);
    CHECK(stats.issued == THREADS * of_thread && stats.capacity > 0);
    CHECK(ringflake_inspect(ids, all[0], &parts) == RINGFLAKE_OK);
    CHECK(parts.unix_ms < stats.now_unix_ms + 300000);
    CHECK(ringflake_inspect(ids, UINT64_MAX, &parts) == RINGFLAKE_FOREIGN_ID);
    check_distinct(all, count);
    CHECK(all[count - 1] <= INT64_MAX);

    CHECK(ringflake_invalidate(ids) == RINGFLAKE_OK);
    CHECK(ringflake_shutdown(ids, 10000) == RINGFLAKE_OK);
    ringflake_close(NULL);
    free(all);
    printf("%zu IDs, no two alike (ringflake %s)\n", count, ringflake_version());
    return 0;
}
