/** The bus by the real clock on a pty and on a socket: what a broken way to the devices comes to. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { silentLog } from '../../src/platform/log.ts';
import { ask, command, forever, optionsWith, outcomeOf, pollOf, says } from '../../test/drivers/bus/bus.ts';
import { openPty } from '../../test/simulators/bus/pty.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { openBus, openPort } from './bus.ts';

async function open(port: string) {
  const options = optionsWith({ port, baudRate: 115_200, turnaroundMaxMs: 50 });
  const bus = await openBus({ options, openPort, clock: systemClock, log: silentLog }, forever);
  onTestFinished(() => bus[Symbol.asyncDispose]());
  return bus;
}

/** A device at every address. */
function answerOn(wire: Duplex): void {
  wire.on('data', (request: Buffer) => wire.write(says(7)(request)));
}

it('loses the port when the adapter is pulled, and works on another bus when it is back', async () => {
  const pty = openPty(join(temporaryFolder(), 'adapter'));
  onTestFinished(() => pty[Symbol.asyncDispose]());
  for (let time = 0; time < 2; time += 1) {
    answerOn(pty.master);
    const bus = await open(pty.path);
    const running = outcomeOf(bus.run(forever));
    const poll = pollOf(1);
    bus.poll(poll);
    await vi.waitFor(() => expect(poll.calls.length).toBeGreaterThan(20));
    await pty.hangUp();
    await vi.waitFor(() => expect(running()).toBe('LINK_LOST'));
    const order = bus.exchange(ask(1), command(systemClock.monotonic() + 1_000), forever);
    await expect(order).rejects.toMatchObject({ code: 'LINK_LOST' });
    await pty.replug();
  }
});

it('loses a serial device server that is gone without a word', async () => {
  const isGone = { value: false };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (request) => {
      if (!isGone.value) socket.write(says(7)(request));
    });
    onTestFinished(() => {
      socket.destroy();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  await once(server, 'listening');
  const address = server.address();
  const bus = await open(`tcp://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  const running = outcomeOf(bus.run(forever));
  const polls = [pollOf(1, 20), pollOf(2, 20)];
  for (const poll of polls) bus.poll(poll);
  await vi.waitFor(() => expect(polls.every(({ calls }) => calls.length > 10)).toBe(true));
  expect(running()).toBe('pending');
  isGone.value = true;
  await vi.waitFor(() => expect(running()).toBe('LINK_LOST'));
});
