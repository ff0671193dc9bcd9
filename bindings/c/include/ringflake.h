/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Generated from the source of the library: do not edit.
 *
 * The contract
 *
 * Ownership. ringflake_open, ringflake_open_local and ringflake_reopen make a
 * generator. ringflake_close or ringflake_shutdown frees it, once. All other memory is the
 * caller's: the library keeps no pointer to a text or a buffer after the call. A call that fails
 * leaves its out-parameters unwritten, unless its description says otherwise.
 *
 * Threads. Every function may be called from any thread, and any number of threads may use
 * one generator at once. Only closing is exclusive: no other call may be using the generator
 * then, or later.
 *
 * Fork. In a forked child a generator of the parent makes no IDs: every call with it returns
 * RINGFLAKE_FORKED, but for ringflake_inspect and ringflake_reopen, which makes a
 * generator for the child, with leases of its own. The child may close the parent's generator,
 * which leaves the parent's leases alone; what the parent's threads held stays allocated. A child
 * of vfork must not call the library before exec. fork waits until no thread of the library
 * uses SQLite, which takes milliseconds. After two seconds, because another process holds the
 * file's lock, or by a raw system call, the fork goes ahead: in the child, ringflake_reopen
 * returns RINGFLAKE_NO_LEASE for good. Exit, and fork again.
 *
 * Errors. None is reported in errno, which any call may change. No panic leaves a function:
 * each is caught, and returned as RINGFLAKE_PANIC. A small allocation that fails ends the
 * process. A failure is kept for its thread, until another call of this thread fails.
 * A success does not touch it.
 *
 * Loading. Threads of the library go on for a moment after a generator is closed. On Linux,
 * Android and FreeBSD the shared library stays loaded after dlclose; elsewhere, and with the
 * static library in a plugin, don't unload it. The threads have the signal mask of the thread
 * that opens a generator.
 *
 * Environment. Opening and reopening read environment variables and files, relative to the
 * current directory. A program that changes either, and then reopens, gives data-dir and
 * absolute paths; no thread may change the environment meanwhile.
 *
 * Pointers. NULL is refused with RINGFLAKE_INVALID wherever a pointer is required. Every
 * other pointer must be what its type says: aligned, alive during the call, and valid for as
 * many items as the size beside it counts. A generator must come from this library, and must
 * not be closed.
 *
 * Stability
 *
 * The soname changes when a program that was linked before would break. Without that, later
 * versions only add: functions, status codes, keys, and fields at the end of
 * ringflake_stats, whose size the caller gives. ringflake_parts never changes.
 */

#ifndef RINGFLAKE_H
#define RINGFLAKE_H

#include <stddef.h>
#include <stdint.h>

/* Room for the text of an ID: up to 13 characters, and a NUL. */
#define RINGFLAKE_TEXT_SIZE 14

/* What a function returns: RINGFLAKE_OK, or why it failed.
 *
 * A later version may return codes that are not listed here, all of them below 255.
 * Treat an unknown code as an error.
 */
typedef enum {
    /* Success. */
    RINGFLAKE_OK = 0,
    /* An argument is wrong: NULL where a pointer is required, a size of zero, or text that is
     * not UTF-8.
     */
    RINGFLAKE_INVALID = 1,
    /* The configuration is wrong, or does not fit the namespace. The message says what is
     * allowed. Nothing was created.
     */
    RINGFLAKE_CONFIG = 2,
    /* A secret can't be used: its file is missing or malformed, others could replace it, or it
     * is not the secret that the namespace was made with.
     */
    RINGFLAKE_SECRET = 3,
    /* The store or the data directory refuses, and waiting does not help. The message says what
     * to do.
     */
    RINGFLAKE_STORE = 4,
    /* No lease is in force: the store is unreachable, or all of its nodes are leased. An open
     * generator keeps asking, so take again later. If opening failed, there is no generator: open
     * again later.
     */
    RINGFLAKE_NO_LEASE = 5,
    /* IDs were taken faster than the leases allow, or the clock was set back. Wait for
     * ringflake_retry_after_ms.
     */
    RINGFLAKE_BORROW_LIMIT = 6,
    /* All rings are empty, and the configuration says on-empty = error. Try again. */
    RINGFLAKE_EMPTY = 7,
    /* The time to wait is over. */
    RINGFLAKE_TIMED_OUT = 8,
    /* This process is a forked child, and the generator belongs to its parent. Call
     * ringflake_reopen.
     */
    RINGFLAKE_FORKED = 9,
    /* The text is no ID. */
    RINGFLAKE_BAD_TEXT = 10,
    /* The ID was not made with this layout and secret. */
    RINGFLAKE_FOREIGN_ID = 11,
    /* The buffer is too small. */
    RINGFLAKE_TOO_SMALL = 12,
    /* The generator is closed, but the store did not confirm in time that its leases are
     * released. Their nodes are free when the leases end.
     */
    RINGFLAKE_UNRELEASED = 13,
    /* The operating system refused memory or a thread. */
    RINGFLAKE_SYSTEM = 14,
    /* A bug in the library. The message is that of the panic. */
    RINGFLAKE_PANIC = 255,
} ringflake_status;

/* A source of unique IDs, shared by any number of threads. */
typedef struct ringflake_generator ringflake_generator;

/* The parts of an ID. */
typedef struct {
    /* Start of the tick in Unix milliseconds. An ID may have been taken some seconds before
     * it or after it.
     */
    uint64_t unix_ms;
    /* Ticks since the epoch of the layout. */
    uint64_t tick;
    /* The node. */
    uint64_t node;
    /* The number within tick and node. */
    uint64_t sequence;
} ringflake_parts;

/* Figures of a generator. Counts are since it was opened. */
typedef struct {
    /* IDs that are ready in the rings. */
    uint64_t level;
    /* Slots in the rings. */
    uint64_t capacity;
    /* IDs handed out. */
    uint64_t issued;
    /* Takes that found all rings empty. */
    uint64_t empties;
    /* Takes and batches that gave no ID. */
    uint64_t failed;
    /* IDs dropped unissued, such as those given up by ringflake_invalidate. */
    uint64_t retired;
    /* How far the last ID that was made lies ahead of the clock, in milliseconds. */
    uint64_t borrowed_ms;
    /* How far ahead IDs may lie, in milliseconds. */
    uint64_t borrow_limit_ms;
    /* When the leases end, in Unix milliseconds; 0 without a lease. */
    uint64_t lease_end_unix_ms;
    /* The clock, in Unix milliseconds. */
    uint64_t now_unix_ms;
} ringflake_stats;

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a generator.
 *
 * config is UTF-8 text with a key = value on each line, without quotes. Lines that are
 * empty or start with # are skipped. local or store is required:
 *
 *     local           name of an ID space on this machine; leases and secret are kept there
 *     data-dir        its directory; the platform's, or RINGFLAKE_DATA_DIR, by default
 *
 *     store           URL of a store that grants leases, such as sqlite:PATH or postgres://...
 *     namespace       required with store: the name that the store was initialised with
 *     secret-file     required with store, unless plain: a file with the secret
 *     block-bits      binary logarithm of the nodes in a block: 5
 *     init-if-new     initialise a missing namespace with this history: new or unknown
 *     timeout         longest time for one request to the store, at least 1ms: 5s
 *
 *     layout          name of a layout, or its widths: randflake
 *     id-width        full, positive or js-safe: full
 *     plain           true: IDs are not encrypted
 *     best-effort     true: accept a store that can lose what it confirmed
 *     blocks          blocks of nodes to lease, 1 to 256: 1
 *     lease-duration  how far ahead of the clock leases are kept
 *     wait            how long to wait here for the first lease: 10s
 *     detached        true: do not wait; see ringflake_wait_ready
 *     borrow-limit    how far ahead of the clock IDs may lie
 *     capacity        slots of all rings, a power of two: 65536
 *     threshold       level of a ring below which it is filled, in percent: 50
 *     producers       threads that fill the rings: 1
 *     on-empty        generate, error, or how long a take waits, such as 5ms: generate
 *
 * The whole text is checked before anything is created. This call asks the store, and so it may
 * block for as long as wait and timeout. All programs that share a namespace need the same
 * layout, id-width and secret.
 */
ringflake_status ringflake_open(const char *config,
                                ringflake_generator **generator);

/* Opens a generator on the ID space name of this user on this machine: ringflake_open with
 * local = name. The first call makes its directory, leases and secret.
 */
ringflake_status ringflake_open_local(const char *name,
                                      ringflake_generator **generator);

/* Opens another generator with the configuration of generator, which stays as it is. Use it
 * in a forked child, where generator belongs to the parent. Files are read anew, and leases
 * are its own.
 */
ringflake_status ringflake_reopen(const ringflake_generator *generator,
                                  ringflake_generator **reopened);

/* Takes one ID. Costs some nanoseconds, and blocks only with on-empty = 5ms or the like.
 *
 * On failure ringflake_retry_after_ms says when another take may succeed.
 */
ringflake_status ringflake_take(const ringflake_generator *generator, uint64_t *id);

/* Takes up to count IDs, which cost less each than one by one. Writes them to the front of
 * ids, and their number to taken.
 *
 * Fewer than count, but at least one, if the rings ran empty on the way. On failure taken
 * is 0. The rest of ids has no meaning. A count of 0 takes nothing, and always succeeds.
 */
ringflake_status ringflake_take_batch(const ringflake_generator *generator,
                                      uint64_t *ids,
                                      size_t count,
                                      size_t *taken);

/* Writes the text of an ID: 1 to 13 of the characters 0-9 and a-v, and a NUL. size is the
 * size of text; RINGFLAKE_TEXT_SIZE is always enough.
 */
ringflake_status ringflake_to_text(uint64_t id, char *text, size_t size);

/* Reads the text of an ID. Accepts what ringflake_to_text writes, and nothing else. */
ringflake_status ringflake_from_text(const char *text, uint64_t *id);

/* Takes an ID of this generator's layout and secret apart. Works in a forked child, too.
 *
 * This authenticates nothing: most numbers that were never issued have parts as well.
 */
ringflake_status ringflake_inspect(const ringflake_generator *generator,
                                   uint64_t id,
                                   ringflake_parts *parts);

/* Reads the figures of a generator. size is sizeof(ringflake_stats).
 *
 * A library that knows more fields than the program fills those that fit. One that knows fewer
 * sets the rest to zero.
 */
ringflake_status ringflake_read_stats(const ringflake_generator *generator,
                                      ringflake_stats *stats,
                                      size_t size);

/* Waits until a lease is in force, for timeout_ms at most; 0 only looks. For a generator that
 * was opened with detached = true, and for a health check.
 *
 * Returns RINGFLAKE_TIMED_OUT if there is no lease by then, and the message has the store's
 * last error.
 */
ringflake_status ringflake_wait_ready(const ringflake_generator *generator,
                                      uint64_t timeout_ms);

/* Gives up all leases, and all IDs in the rings. Call it when a virtual machine was resumed
 * from a snapshot, before the first take: a copy of it may have the same leases.
 *
 * Takes fail with RINGFLAKE_NO_LEASE until new leases come; see ringflake_wait_ready.
 */
ringflake_status ringflake_invalidate(const ringflake_generator *generator);

/* Closes a generator and waits for timeout_ms at most until its leases are released, so that
 * others can have its nodes at once. Whatever this returns, but for RINGFLAKE_INVALID, the
 * generator is gone.
 *
 * No other call may be using the generator.
 */
ringflake_status ringflake_shutdown(ringflake_generator *generator,
                                    uint64_t timeout_ms);

/* Closes a generator, as ringflake_shutdown does with a second of time. Does nothing with
 * NULL.
 *
 * No other call may be using the generator.
 */
void ringflake_close(ringflake_generator *generator);

/* The status of the last call of this thread that failed; RINGFLAKE_OK if none did. */
ringflake_status ringflake_last_status(void);

/* The message of the last call of this thread that failed, in UTF-8; empty if none did. It holds
 * no secret and no password. Valid until the next call of this thread that fails, and at most
 * until the thread ends.
 *
 * A runtime that moves tasks between threads, such as Go's, must make both calls on one thread.
 */
const char *ringflake_last_error(void);

/* About how many milliseconds to wait before the last failed call of this thread may succeed;
 * -1 if waiting does not help, or if the time is unknown.
 */
int64_t ringflake_retry_after_ms(void);

/* The name of a status, such as "RINGFLAKE_FORKED". Never NULL. */
const char *ringflake_status_name(int status);

/* The version of the library, such as "0.1.0". */
const char *ringflake_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif 

#endif  /* RINGFLAKE_H */
