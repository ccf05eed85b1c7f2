/** The RS-485 mode of a port: refused by a pty, and set on a library that records the call in place of the kernel. */
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { silentLog } from '../../src/platform/log.ts';
import { optionsWith } from '../../test/drivers/bus/bus.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openPty } from '../../test/simulators/bus/pty.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { openPort } from './bus.ts';
import { setRs485Mode } from './rs485-mode.ts';

const hasCompiler = spawnSync('cc', ['--version']).error === undefined;
const MODE = { rtsOnSend: true, rtsAfterSend: false, delayBeforeMs: 1, delayAfterMs: 2 };

/** In place of the ioctl of the C library: writes its argument into a file, and keeps it; FLAGS_KEPT is what a driver leaves of the flags. */
const RECORDER = `
#include <linux/serial.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static struct serial_rs485 kept;
int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  struct serial_rs485 *mode = va_arg(rest, struct serial_rs485 *);
  va_end(rest);
  FILE *file = fopen(getenv("RECORD"), "a");
  fprintf(file, "%d %lx %u %u %u\\n", fd, request, mode->flags, mode->delay_rts_before_send, mode->delay_rts_after_send);
  fclose(file);
  if (request == 0x542f) { kept = *mode; kept.flags &= atoi(getenv("FLAGS_KEPT")); }
  else *mode = kept;
  return 0;
}
`;

function recorder(flagsKept: number) {
  const folder = temporaryFolder();
  const [source, library, record] = ['recorder.c', 'recorder.so', 'record'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  writeFileSync(source, RECORDER);
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, source]);
  writeFileSync(record, '');
  const descriptor = openSync('/dev/null', 'r+');
  onTestFinished(() => closeSync(descriptor));
  const environment = { LD_PRELOAD: library, RECORD: record, FLAGS_KEPT: String(flagsKept) };
  return { descriptor, environment, calls: () => readFileSync(record, 'utf8').trim().split('\n') };
}

it.runIf(hasCompiler)(
  'goes to the kernel as struct serial_rs485 (TIOCSRS485), and is read back (TIOCGRS485)',
  async () => {
    const { descriptor, environment, calls } = recorder(0xffff);
    await setRs485Mode(descriptor, MODE, environment);
    // linux/serial.h: enabled 1, RTS on send 2, RTS after send 4.
    expect(calls()).toEqual(['3 542f 3 1 2', '3 542e 3 1 2']);
    await setRs485Mode(descriptor, { ...MODE, rtsOnSend: false, rtsAfterSend: true }, environment);
    expect(calls().at(-2)).toBe('3 542f 5 1 2');
  },
);

it.runIf(hasCompiler)('that the driver changes is no success', async () => {
  const { descriptor, environment } = recorder(0xffff - 2);
  await expect(setRs485Mode(descriptor, MODE, environment)).rejects.toThrow(
    /has another RS-485 mode in force .*flags 1, not 3/,
  );
});

it.runIf(hasCompiler)('is refused by a port that has none, and that port is free again', async () => {
  const pty = openPty(join(temporaryFolder(), 'adapter'));
  onTestFinished(() => pty[Symbol.asyncDispose]());
  const listener = { data: () => undefined, lost: () => undefined };
  const context = { clock: manualClock(), log: silentLog };
  const options = optionsWith({ port: pty.path });
  const never = new AbortController().signal;
  await expect(openPort({ ...options, rs485: MODE }, listener, context, never)).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringMatching(/the driver of the port has no RS-485 mode \(TIOCSRS485\): remove rs485/),
  });
  const port = await openPort(options, listener, context, never);
  await port[Symbol.asyncDispose]();
});
