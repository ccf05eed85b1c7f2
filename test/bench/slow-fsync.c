/*
 * LD_PRELOAD: every fsync and fdatasync takes SLOW_FSYNC_MS milliseconds longer, as on the eMMC or SD card of a site
 * controller. Built and used by slow-disk.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int slowly(const char *name, int file) {
  const char *text = getenv("SLOW_FSYNC_MS");
  long milliseconds = text ? atol(text) : 0;
  struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  while (nanosleep(&left, &left) != 0);
  return sync(file);
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
