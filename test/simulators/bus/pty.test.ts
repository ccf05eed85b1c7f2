/** Pseudo-terminals that hang up and come back. */
import { closeSync, constants, existsSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../temporary.ts';
import { openPty } from './pty.ts';

/** As a gateway opens it. */
const openPort = (path: string) =>
  openSync(path, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
/** Every byte that a terminal which is not raw would change, drop or answer. */
const SPECIAL = Buffer.from([0x03, 0x04, 0x0a, 0x0d, 0x11, 0x13, 0x7f, 0x00, 0xff]);

function heard(port: number): Buffer {
  const bytes = Buffer.alloc(64);
  return bytes.subarray(0, readSync(port, bytes));
}

it('carries every byte as it is, both ways, and echoes nothing', async () => {
  await using pty = openPty();
  pty.master.write(SPECIAL);
  const port = openPort(pty.path);
  expect(heard(port)).toEqual(SPECIAL);

  const received: Buffer[] = [];
  pty.master.on('data', (chunk: Buffer) => received.push(chunk));
  writeSync(port, SPECIAL);
  await expect.poll(() => Buffer.concat(received)).toEqual(SPECIAL);
  expect(() => heard(port)).toThrow('EAGAIN');
  closeSync(port);
});

it('outlives ports that close', async () => {
  await using pty = openPty();
  const received: Buffer[] = [];
  pty.master.on('data', (chunk: Buffer) => received.push(chunk));
  for (const text of ['one', 'two']) {
    const port = openPort(pty.path);
    writeSync(port, text);
    await expect.poll(() => Buffer.concat(received).toString()).toContain(text);
    closeSync(port);
  }
});

it('hangs up, and comes back at the same path', async () => {
  const link = join(temporaryFolder(), 'rs485');
  const pty = openPty(link);
  const lost = openPort(link);
  const before = pty.master;
  await pty.hangUp();
  expect(heard(lost)).toHaveLength(0);
  expect(() => writeSync(lost, 'x')).toThrow('EIO');
  expect(() => openPort(link)).toThrow('ENOENT');
  expect(() => pty.master).toThrow('replug it first');

  await pty.replug();
  expect(pty.master).not.toBe(before);
  const port = openPort(link);
  pty.master.write('again');
  expect(heard(port).toString()).toBe('again');
  closeSync(lost);
  closeSync(port);

  await pty[Symbol.asyncDispose]();
  expect(existsSync(link)).toBe(false);
});
