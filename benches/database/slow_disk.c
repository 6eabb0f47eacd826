/* Preloaded into a PostgreSQL server: every fsync and fdatasync takes FSYNC_MICROSECONDS more.
 *
 * A disk of known slowness, whatever the machine has; with 0 and a data directory in memory it is a
 * disk that costs nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void wait_for_the_disk(void)
{
    static long microseconds = -1;
    if (microseconds < 0) {
        const char *given = getenv("FSYNC_MICROSECONDS");
        microseconds = given ? atol(given) : 0;
    }
    struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    while (microseconds && nanosleep(&pause, &pause) != 0) {
    }
}

static int synced(const char *name, int file)
{
    int (*real)(int) = (int (*)(int)) dlsym(RTLD_NEXT, name);
    wait_for_the_disk();
    return real(file);
}

int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }
