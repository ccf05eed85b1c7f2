/*
 * What one writes with libmodbus: polls units in turn with the timeout that the library has by default, and between two
 * polls closes the relays that standard input asks for, in lines of [ID,UNIT,RELAY]. PORT BAUD UNIT..., where PORT may be
 * HOST:PORT of a Modbus TCP gateway.
 */
#include <errno.h>
#include <modbus.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The map of a gatehouse-io: config/profiles/gatehouse-io.yaml. */
enum { STATUS = 0x0000, STATUS_REGISTERS = 10, PULSE = 0x0200, PULSE_REGISTERS = 4, PULSE_MS = 100 };

/* 1: an order was read, 0: none waits, -1: the input has ended. */
static int ordered(int *id, int *unit, int *relay) {
  static char line[64];
  static size_t length;
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  while (poll(&input, 1, 0) > 0) {
    char byte;
    if (read(STDIN_FILENO, &byte, 1) <= 0) return -1;
    if (byte != '\n' && length < sizeof line - 1) {
      line[length++] = byte;
      continue;
    }
    line[length] = '\0';
    length = 0;
    if (sscanf(line, "[%d,%d,%d]", id, unit, relay) == 3) return 1;
  }
  return 0;
}

static void fire(modbus_t *bus, int id, int unit, int relay) {
  uint16_t pulse[PULSE_REGISTERS] = {(uint16_t)id, (uint16_t)relay, 0, PULSE_MS};
  modbus_set_slave(bus, unit);
  if (modbus_write_registers(bus, PULSE, PULSE_REGISTERS, pulse) == PULSE_REGISTERS)
    printf("{\"kind\":\"fired\",\"id\":%d,\"failed\":null}\n", id);
  else
    printf("{\"kind\":\"fired\",\"id\":%d,\"failed\":\"%s\"}\n", id, modbus_strerror(errno));
}

static modbus_t *bus_at(char *port, int baud_rate) {
  char *colon = strchr(port, ':');
  if (!colon) return modbus_new_rtu(port, baud_rate, 'E', 8, 1);
  *colon = '\0';
  return modbus_new_tcp(port, atoi(colon + 1));
}

int main(int count, char **arguments) {
  if (count < 4) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  modbus_t *bus = bus_at(arguments[1], atoi(arguments[2]));
  if (!bus || modbus_connect(bus) != 0) {
    fprintf(stderr, "%s: %s\n", arguments[1], modbus_strerror(errno));
    return 1;
  }
  printf("{\"kind\":\"ready\"}\n");
  for (int next = 3;; next = next + 1 < count ? next + 1 : 3) {
    int id, unit, relay, order;
    while ((order = ordered(&id, &unit, &relay)) == 1) fire(bus, id, unit, relay);
    if (order < 0) return 0;
    uint16_t status[STATUS_REGISTERS];
    modbus_set_slave(bus, atoi(arguments[next]));
    modbus_read_registers(bus, STATUS, STATUS_REGISTERS, status);
  }
}
