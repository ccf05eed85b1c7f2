/*
 * A Gatehouse I/O controller (config/profiles/gatehouse-io.yaml) on libmodbus, at the far end of a pseudo-terminal, or as a
 * Modbus TCP server that takes one connection at a time.
 *
 *     cc -I/usr/include/modbus -o modbus-slave modbus-slave.c -lmodbus
 *     modbus-slave UNIT HWID [tcp]
 *
 * Prints the path of the serial port, or host:port. Lines on standard input change it: `input MASK`, `status MASK`, `restart`.
 * Ends with its standard input.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <modbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { REGISTERS = 0x0328, SETTINGS = 0x0100, SETTINGS_LENGTH = 7, PULSE = 0x0200, PULSE_LENGTH = 4 };
enum { INPUTS, EDGES, OUTPUTS, VERSION, BOOT = 5, STATUS, PULSE_ID, REMAINING };

static uint16_t *registers;
static double pulse_end;

static double now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void put_text(int address, const char *text) {
  char padded[16] = {0};
  memcpy(padded, text, strnlen(text, sizeof padded));
  for (int i = 0; i < 8; i++) registers[address + i] = (uint8_t)padded[2 * i] << 8 | (uint8_t)padded[2 * i + 1];
}

static void tick(void) {
  double left = pulse_end - now_ms();
  uint32_t remaining = left > 0 ? (uint32_t)(left + 1) : 0;
  registers[REMAINING] = remaining >> 16;
  registers[REMAINING + 1] = remaining & 0xffff;
  if (remaining == 0) registers[OUTPUTS] = 0;
}

static uint16_t word(const uint8_t *bytes) { return bytes[0] << 8 | bytes[1]; }
static uint32_t both(const uint8_t *bytes) { return (uint32_t)word(bytes) << 16 | word(bytes + 2); }
static int is_duration(uint32_t ms) { return ms >= 100 && ms <= 600000; }

/* Whether a write of these registers is accepted; a pulse begins here. */
static int accepts(int address, int count, const uint8_t *values) {
  if (address == SETTINGS && count == SETTINGS_LENGTH)
    return !(word(values) & 0x00f0) && word(values + 2) < 8 && is_duration(both(values + 4)) && word(values + 8) < 2;
  if (address != PULSE || count != PULSE_LENGTH || word(values + 2) > 7 || !is_duration(both(values + 4))) return 0;
  if (word(values) == registers[PULSE_ID]) return 1;
  registers[PULSE_ID] = word(values);
  registers[OUTPUTS] |= 1 << word(values + 2);
  double end = now_ms() + both(values + 4);
  if (end > pulse_end) pulse_end = end;
  return 1;
}

static void obey(const char *line) {
  unsigned mask;
  if (sscanf(line, "input %u", &mask) == 1) {
    for (int i = 0; i < 4; i++)
      if (mask & ~registers[INPUTS] & 1 << i && registers[SETTINGS + 4] & 1) {
        int edges = ((registers[EDGES] >> 4 * i) + 1) & 15;
        registers[EDGES] = (registers[EDGES] & ~(15 << 4 * i)) | edges << 4 * i;
      }
    registers[INPUTS] = mask;
  }
  if (sscanf(line, "status %u", &mask) == 1) registers[STATUS] = mask;
  if (strncmp(line, "restart", 7) == 0) registers[BOOT] += 1;
}

static modbus_t *on_terminal(int *master) {
  *master = posix_openpt(O_RDWR | O_NOCTTY);
  if (*master < 0 || grantpt(*master) || unlockpt(*master)) exit(1);
  /* Held open, or reads fail while no one has the port. */
  int slave = open(ptsname(*master), O_RDWR | O_NOCTTY);
  struct termios raw;
  if (slave < 0 || tcgetattr(slave, &raw)) exit(1);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  modbus_t *context = modbus_new_rtu(ptsname(*master), 19200, 'E', 8, 1);
  if (context) modbus_set_socket(context, *master);
  printf("%s\n", ptsname(*master));
  return context;
}

static modbus_t *on_network(int *listening) {
  modbus_t *context = modbus_new_tcp("127.0.0.1", 0);
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  if (!context || (*listening = modbus_tcp_listen(context, 1)) < 0) exit(1);
  if (getsockname(*listening, (struct sockaddr *)&address, &length)) exit(1);
  printf("127.0.0.1:%d\n", ntohs(address.sin_port));
  return context;
}

int main(int count, char **arguments) {
  int is_tcp = count == 4 && strcmp(arguments[3], "tcp") == 0;
  if (count != 3 && !is_tcp) return 2;
  int listening = -1;
  int wire = -1;
  modbus_t *context = is_tcp ? on_network(&listening) : on_terminal(&wire);
  modbus_mapping_t *mapping = modbus_mapping_new(0, 0, REGISTERS, 0);
  if (!context || !mapping) return 1;
  modbus_set_slave(context, atoi(arguments[1]));
  registers = mapping->tab_registers;
  registers[BOOT] = 1;
  registers[SETTINGS + 3] = 5000;
  put_text(0x0300, arguments[2]);
  put_text(0x0308, "libmodbus");
  put_text(0x0310, LIBMODBUS_VERSION_STRING);
  put_text(0x0318, "slave");
  put_text(0x0320, "1");
  fflush(stdout);

  for (;;) {
    int heard = wire >= 0 ? wire : listening;
    fd_set ready;
    FD_ZERO(&ready);
    FD_SET(0, &ready);
    FD_SET(heard, &ready);
    if (select(heard + 1, &ready, NULL, NULL, NULL) < 0) return 1;
    if (FD_ISSET(0, &ready)) {
      char line[80] = {0};
      if (read(0, line, sizeof line - 1) <= 0) return 0;
      obey(line);
    }
    if (!FD_ISSET(heard, &ready)) continue;
    if (wire < 0) {
      wire = modbus_tcp_accept(context, &listening);
      continue;
    }
    uint8_t query[MODBUS_TCP_MAX_ADU_LENGTH];
    int length = modbus_receive(context, query);
    if (length < 0 && is_tcp) {
      close(wire);
      wire = -1;
    }
    if (length <= 0) continue;
    tick();
    const uint8_t *function = query + modbus_get_header_length(context);
    int address = word(function + 1);
    if (*function == MODBUS_FC_WRITE_MULTIPLE_REGISTERS && !accepts(address, word(function + 3), function + 6)) {
      modbus_reply_exception(context, query, MODBUS_EXCEPTION_ILLEGAL_DATA_VALUE);
      continue;
    }
    modbus_reply(context, query, length, mapping);
    if (*function == MODBUS_FC_WRITE_MULTIPLE_REGISTERS && address == SETTINGS) {
      registers[VERSION] = registers[SETTINGS + 5];
      registers[VERSION + 1] = registers[SETTINGS + 6];
      if (!(registers[SETTINGS + 4] & 1)) registers[EDGES] = 0;
    }
    tick();
  }
}
