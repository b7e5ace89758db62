/*
 * Preloaded into a Redis server: its wall clock stands at as many microseconds as the file STANDING_CLOCK says. While that is
 * 0, and for the monotonic clock, it is as it is.
 */
#include "../../../../../support/preloaded-clock.h"

__attribute__((constructor)) static void open_clock(void) { open_number("STANDING_CLOCK"); }

static void change(clockid_t clock, struct timespec *at) {
  int64_t micros = *number;
  if (!micros || !is_wall(clock)) return;
  at->tv_sec = micros / 1000000;
  at->tv_nsec = micros % 1000000 * 1000;
}
