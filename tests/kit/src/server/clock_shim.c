/* Preloaded into a server: its calendar clock shows what a file says.
 *
 * `clock.rs` compiles this to a library that the dynamic linker puts before libc's functions. It
 * allocates nothing, since the server's allocator asks for the time while it starts.
 *
 * The file that RINGFLAKE_CLOCK_FILE names holds a number of 8 bytes in the machine's order: by
 * how many milliseconds the clock is ahead. */

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t ahead_ms(void) {
    /* The mapped file, once it was needed. Two threads may both map it. */
    static _Atomic(_Atomic int64_t *) mapped;
    _Atomic int64_t *file = atomic_load(&mapped);
    if (!file) {
        const char *path = getenv("RINGFLAKE_CLOCK_FILE");
        int descriptor = path ? open(path, O_RDONLY) : -1;
        if (descriptor < 0)
            return 0;
        file = mmap(NULL, 8, PROT_READ, MAP_SHARED, descriptor, 0);
        if (file == MAP_FAILED)
            return 0;
        atomic_store(&mapped, file);
    }
    return atomic_load(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ahead = ahead_ms();
        int64_t nanos = now->tv_nsec + ahead % 1000 * 1000000;
        now->tv_sec += ahead / 1000;
        if (nanos < 0) {
            nanos += 1000000000;
            now->tv_sec -= 1;
        }
        now->tv_sec += nanos / 1000000000;
        now->tv_nsec = nanos % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    if (result == 0) {
        time->tv_sec = now.tv_sec;
        time->tv_usec = now.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *seconds) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds)
        *seconds = now.tv_sec;
    return now.tv_sec;
}
