/*
 * Preloaded into a Redis server: its wall clock is off by as many seconds as the file WALL_CLOCK_OFFSET says, at every moment.
 * The monotonic clock stays as it is. libfaketime does the same, but a server with jemalloc, which asks for the time before
 * the libraries are ready, does not start with it.
 */
#include "../../../support/preloaded-clock.h"

__attribute__((constructor)) static void open_offset(void) { open_number("WALL_CLOCK_OFFSET"); }

static void change(clockid_t clock, struct timespec *at) {
  if (is_wall(clock)) at->tv_sec += *number;
}
