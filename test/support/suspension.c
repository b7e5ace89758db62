/*
 * Preloaded into a Node process: what it sees of a machine that has been suspended for as many ms as the file
 * SUSPENDED_FOR says. The wall clock and the uptime have gone on, the monotonic clock has stood still.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "preloaded-clock.h"

__attribute__((constructor)) static void open_time(void) { open_number("SUSPENDED_FOR"); }

static void change(clockid_t clock, struct timespec *at) {
  if (!is_wall(clock) && clock != CLOCK_BOOTTIME) return;
  int64_t suspended = *number;
  int64_t nanoseconds = at->tv_nsec + suspended % 1000 * 1000000;
  at->tv_sec += suspended / 1000 + nanoseconds / 1000000000;
  at->tv_nsec = nanoseconds % 1000000000;
}

/* As the kernel writes it: in hundredths of a second. */
static int uptime(void) {
  struct timespec now;
  char text[64];
  int ends[2];
  clock_gettime(CLOCK_BOOTTIME, &now);
  int length = snprintf(text, sizeof text, "%lld.%02ld 0.00\n", (long long)now.tv_sec, now.tv_nsec / 10000000);
  if (pipe(ends)) return -1;
  if (write(ends[1], text, length) != length) return -1;
  close(ends[1]);
  return ends[0];
}

static int open_as(const char *name, const char *path, int flags, int mode) {
  if (number && strcmp(path, "/proc/uptime") == 0) return uptime();
  int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
  return next(path, flags, mode);
}

static int mode_of(int flags, va_list rest) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; }

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = mode_of(flags, rest);
  va_end(rest);
  return open_as("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = mode_of(flags, rest);
  va_end(rest);
  return open_as("open64", path, flags, mode);
}
