/* Preloaded into a process: fsync and fdatasync of a write-ahead log fail with EIO as often as the file named by FAILING_FSYNC says, after as many that succeed as it says. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_log(int fd) {
  char link[64], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, name, sizeof name);
  return length >= 4 && memcmp(name + length - 4, "-wal", 4) == 0;
}

static int fails(int fd) {
  const char *order = getenv("FAILING_FSYNC");
  int left = 0, after = 0;
  FILE *file = order && is_log(fd) ? fopen(order, "r+") : NULL;
  if (!file) return 0;
  int read = fscanf(file, "%d %d", &left, &after);
  int hit = read >= 1 && left > 0 && after == 0;
  char text[32];
  rewind(file);
  if (hit) snprintf(text, sizeof text, "%d 0", left - 1);
  else snprintf(text, sizeof text, "%d %d", left, after - 1);
  if (hit || after > 0) fprintf(file, "%-20s", text);
  fclose(file);
  return hit;
}

static int sync_by(long call, int fd) {
  if (!fails(fd)) return (int)syscall(call, fd);
  errno = EIO;
  return -1;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }
