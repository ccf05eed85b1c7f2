/* Sets the RS-485 mode of a serial port, for Node.js makes no ioctl: rs485-mode FLAGS BEFORE AFTER, with the port as descriptor 3.
   Says what is in force then, which a driver may have changed (linux/serial.h, serial-rs485.rst of the kernel). */
#include <errno.h>
#include <linux/serial.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <asm/ioctls.h>

#define PORT 3

int main(int argc, char **argv) {
  struct serial_rs485 mode;
  memset(&mode, 0, sizeof mode);
  if (argc != 4) return 2;
  mode.flags = strtoul(argv[1], NULL, 10);
  mode.delay_rts_before_send = strtoul(argv[2], NULL, 10);
  mode.delay_rts_after_send = strtoul(argv[3], NULL, 10);
  if (ioctl(PORT, TIOCSRS485, &mode) != 0 || ioctl(PORT, TIOCGRS485, &mode) != 0) {
    fprintf(stderr, "%d", errno);
    return 1;
  }
  printf("%u %u %u", mode.flags, mode.delay_rts_before_send, mode.delay_rts_after_send);
  return 0;
}
