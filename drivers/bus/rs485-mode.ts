/**
 * The RS-485 mode of a UART (TIOCSRS485), in which the kernel switches the line driver by RTS. Neither Node.js nor serialport makes that
 * call, so a program of a few lines does (rs485-mode.c), on the descriptor of the open port. A package has it built; a checkout builds it
 * with the C compiler of the machine when it is first asked for.
 */
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { BusOptions } from './options.ts';

const SOURCE = join(import.meta.dirname, 'rs485-mode.c');
/** Of a package, and of a checkout. */
const PACKAGED = join(import.meta.dirname, 'rs485-mode');
const BUILT = join(import.meta.dirname, '../../node_modules/.cache/gatehouse/rs485-mode');
const COMPILER = '/usr/bin/cc';
const DEADLINE_MS = 5_000;

/** linux/serial.h. */
const [ENABLED, RTS_ON_SEND, RTS_AFTER_SEND] = [1, 2, 4];
/** errno.h of Linux: the ways in which drivers say that they do not have it. */
const [EINVAL, ENOTTY, ENOSYS] = [22, 25, 38];

export type Rs485Mode = NonNullable<BusOptions['rs485']>;

/** `fd`: of the open port. `environment`: of the program. Throws with what is to be done. */
export async function setRs485Mode(
  fd: number,
  { rtsOnSend, rtsAfterSend, delayBeforeMs, delayAfterMs }: Rs485Mode,
  environment: Record<string, string> = {},
): Promise<void> {
  const flags = ENABLED | (rtsOnSend ? RTS_ON_SEND : 0) | (rtsAfterSend ? RTS_AFTER_SEND : 0);
  const wanted = [flags, delayBeforeMs, delayAfterMs];
  const { code, out, error } = await runHelper(await helper(), wanted.map(String), fd, environment);
  if (code === 0) {
    const [now = 0] = out.split(' ').map(Number);
    const mask = ENABLED | RTS_ON_SEND | RTS_AFTER_SEND;
    if ((now & mask) === flags) return;
    throw new Error(
      `the driver of the port has another RS-485 mode in force than rs485 asks for (flags ${now}, not ${flags}): it cannot switch RTS like that`,
    );
  }
  const errno = Number(error);
  throw new Error(
    [EINVAL, ENOTTY, ENOSYS].includes(errno)
      ? 'the driver of the port has no RS-485 mode (TIOCSRS485): remove rs485 from the options, and use an adapter that turns its line driver round by itself'
      : `its RS-485 mode could not be set (errno ${error || code})`,
  );
}

function runHelper(file: string, argv: string[], fd: number, environment: Record<string, string>) {
  return new Promise<{ code: number | null; out: string; error: string }>((resolve, reject) => {
    const child = spawn(file, argv, {
      stdio: ['ignore', 'pipe', 'pipe', fd],
      env: environment,
      timeout: DEADLINE_MS,
    });
    const texts = { out: '', error: '' };
    child.stdout?.on('data', (bytes) => (texts.out += bytes));
    child.stderr?.on('data', (bytes) => (texts.error += bytes));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...texts }));
  });
}

async function helper(): Promise<string> {
  if (existsSync(PACKAGED)) return PACKAGED;
  if (existsSync(BUILT) && statSync(BUILT).mtimeMs >= statSync(SOURCE).mtimeMs) return BUILT;
  if (!existsSync(COMPILER))
    throw new Error(
      'rs485 needs a C compiler in a checkout (Debian: gcc libc6-dev); the package of Gatehouse has the program built',
    );
  mkdirSync(dirname(BUILT), { recursive: true });
  const draft = `${BUILT}.${randomUUID()}`;
  await promisify(execFile)(COMPILER, ['-Os', '-o', draft, SOURCE], { env: { PATH: '/usr/bin:/bin' } });
  renameSync(draft, BUILT);
  return BUILT;
}
