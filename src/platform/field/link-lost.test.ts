/** What is said of a link once it is lost, or its host is to end, is of the past: no one may take it for how things are. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { FAULTY_DRIVERS } from '../../../test/platform/field/faulty-drivers.ts';
import { ALWAYS_ACTING } from '../acting.ts';
import { silentLog } from '../log.ts';
import { openChannel } from './channel.ts';
import { serve } from './host/serve.ts';
import { openHost } from './hosts.ts';
import { parseDaemonMessage, parseHostMessage } from './ipc.ts';

type Message = { type: string; [key: string]: unknown };

it.each([
  ['what waited to be reported', ['flood', 'flood', 'break']],
  ['what its driver says while it closes', ['last words']],
])('a host keeps %s to itself once the link is down', async (_what, kinds) => {
  const [near, far] = duplexPair();
  const clock = manualClock();
  const heard: Message[] = [];
  const daemon = openChannel<unknown, Message>(far, parseHostMessage, (message) =>
    heard.push(message as Message),
  );
  onTestFinished(() => daemon.close());
  const { signal } = new AbortController();
  void serve({ stream: near, protocols: [], drivers: FAULTY_DRIVERS, clock, signal });
  void daemon.send({ type: 'start', links: [{ id: 'a', protocol: 'faulty', options: {} }] });
  await expect.poll(() => heard.filter(({ type }) => type === 'link')).toHaveLength(1);
  const deadline = clock.monotonic() + 1_000;
  for (const [index, kind] of kinds.entries()) {
    await daemon.send({ type: 'command', id: index + 1, linkId: 'a', kind, data: 1, deadline });
    await clock.advance(1);
  }
  await clock.advance(30);
  const isDown = heard.findIndex(({ type, up }) => type === 'link' && up === false);
  expect(isDown).toBeGreaterThan(0);
  expect(heard.slice(isDown).map(({ type }) => type)).not.toContain('report');
});

it('the daemon takes answers and events of a host that is to end, and no word of its links', async () => {
  const [near, far] = duplexPair();
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-lost-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const clock = manualClock();
  const passed: string[] = [];
  const forged = openChannel<unknown, Message>(far, parseDaemonMessage, () => {});
  const exited = Promise.withResolvers<string>();
  const process = {
    pid: globalThis.process.pid,
    stream: near,
    exited: exited.promise,
    async end() {
      await forged.send({ type: 'link', linkId: 'a', up: true });
      await forged.send({ type: 'report', linkId: 'a', subject: 'device:1', state: 'connected' });
      await forged.send({ type: 'event', linkId: 'a', seq: 1, id: 'e', kind: 'k', data: null });
      forged.close();
      exited.resolve('it ended');
    },
  };
  const host = openHost({
    acting: ALWAYS_ACTING,
    name: 'one',
    links: [{ id: 'a', protocol: 'faulty', host: 'one', options: {} }],
    first: process,
    pidFile: join(directory, 'one.pid'),
    kill: () => {},
    execPath: '',
    clock,
    log: silentLog,
    listener: {
      link: (_, up) => void passed.push(up ? 'up' : 'down'),
      report: (_, { subject }) => void passed.push(subject),
      event: async (_, { id }) => void passed.push(id),
    },
  });
  const stop = new AbortController();
  const ended = host.run(stop.signal);
  await forged.send({ type: 'heartbeat' });
  await forged.send({ type: 'link', linkId: 'a', up: true });
  await expect.poll(() => passed).toEqual(['up']);
  stop.abort();
  await ended;
  expect(passed).toEqual(['up', 'down', 'e']);
});
