/** Each side of the conversation against a peer that does not keep to it, on a manual clock. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Plain } from '../../../drivers/contract/driver.ts';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { FAULTY_DRIVERS } from '../../../test/platform/field/faulty-drivers.ts';
import { ALWAYS_ACTING } from '../acting.ts';
import { silentLog } from '../log.ts';
import { openChannel } from './channel.ts';
import { openConversation } from './conversation.ts';
import { DRIVER_ENDING_DEADLINE_MS } from './host/links.ts';
import { EXIT, serve } from './host/serve.ts';
import { COMMANDS_MAX, EVENT_CREDITS, parseDaemonMessage, parseHostMessage, SUBJECTS_MAX } from './ipc.ts';

type Message = { type: string; [key: string]: unknown };
const never = new AbortController().signal;

/** The daemon's side, with a forged host. */
function daemonSide() {
  const [near, far] = duplexPair();
  const clock = manualClock();
  const stored: string[] = [];
  const answers: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const conversation = openConversation({
    acting: ALWAYS_ACTING,
    stream: near,
    linkIds: new Set(['a']),
    listener: {
      link: (id, up) => stored.push(`${id} ${up ? 'up' : 'down'}`),
      report: (id, { subject }) => stored.push(`${id} ${subject}`),
      event: () => new Promise((resolve, reject) => answers.push({ resolve, reject })),
    },
    clock,
    log: silentLog,
  });
  const heard: Message[] = [];
  const forged = openChannel<unknown, Message>(far, parseDaemonMessage, (message) =>
    heard.push(message as Message),
  );
  onTestFinished(() => conversation[Symbol.dispose]());
  return { clock, conversation, send: forged.send, heard, stored, answers };
}

/** The host's side, with a forged daemon. */
function hostSide(links: { id: string; protocol: string; options: Plain }[]) {
  const [near, far] = duplexPair();
  const clock = manualClock();
  const asked = new AbortController();
  const code = serve({ stream: near, protocols: [], drivers: FAULTY_DRIVERS, clock, signal: asked.signal });
  const heard: Message[] = [];
  const forged = openChannel<unknown, Message>(far, parseHostMessage, (message) =>
    heard.push(message as Message),
  );
  onTestFinished(() => forged.close());
  const beating = async (times: number) => {
    for (let beat = 0; beat < times; beat += 1) {
      void forged.send({ type: 'heartbeat' });
      await clock.advance(500);
    }
  };
  return {
    clock,
    code,
    asked,
    heard,
    beating,
    send: forged.send,
    close: forged.close,
    of: (type: string) => heard.filter((message) => message.type === type),
    async start() {
      void forged.send({ type: 'start', links });
      // Each link has tried to open.
      while (heard.filter(({ type }) => type === 'link').length < links.length) await beating(1);
    },
  };
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-protocol-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const command = (clock: ManualClock, id: number, kind: string, data: Plain = null) => ({
  type: 'command',
  id,
  linkId: 'a',
  kind,
  data,
  deadline: clock.monotonic() + 1_000,
});

describe('a host', () => {
  it.each([
    ['of a link it does not have', { type: 'link', linkId: 'b', up: true }],
    ['of a command no one gave', { type: 'done', id: 1, data: null }],
    ['in words no one knows', { type: 'evil' }],
    ['as the daemon would', { type: 'heartbeat', at: 1 }],
  ])('that speaks %s is given up', async (_what, message) => {
    const { conversation, send } = daemonSide();
    await send(message);
    expect(await conversation.failed).toMatch(/does not have|not open|not understood/);
  });

  it('that emits without credits is given up', async () => {
    const { conversation, send } = daemonSide();
    for (let seq = 1; seq <= EVENT_CREDITS + 1; seq += 1) {
      void send({ type: 'event', linkId: 'a', seq, id: `e${seq}`, kind: 'k', data: null });
    }
    expect(await conversation.failed).toContain('credits');
  });

  it('that invents subjects without end is given up', async () => {
    const { conversation, send, stored } = daemonSide();
    for (let n = 0; n <= SUBJECTS_MAX; n += 1) {
      void send({ type: 'report', linkId: 'a', subject: `s${n}`, state: n });
    }
    expect(await conversation.failed).toContain('subjects');
    expect(stored).toHaveLength(SUBJECTS_MAX);
  });

  it('may be silent for 30 s while it loads its code, and for 3 s after that', async () => {
    const { clock, conversation, send } = daemonSide();
    let failed = '';
    void conversation.failed.then((reason) => {
      failed = reason;
    });
    await clock.advance(29_000);
    expect(failed).toBe('');
    await send({ type: 'heartbeat' });
    await clock.advance(2_900);
    expect(failed).toBe('');
    await clock.advance(700);
    expect(failed).toBe('fell silent');
  });

  it('is given no more commands than it may have open', async () => {
    const { conversation } = daemonSide();
    const give = () => conversation.execute('a', { kind: 'echo', data: null, timeoutMs: 1_000 }, never);
    const given = Array.from({ length: COMMANDS_MAX }, give);
    await expect(give()).rejects.toMatchObject({ code: 'BUSY' });
    conversation[Symbol.dispose]();
    const ends = await Promise.allSettled(given);
    expect(new Set(ends.map((end) => end.status === 'rejected' && end.reason.code))).toEqual(
      new Set(['OUTCOME_UNKNOWN']),
    );
  });

  it('learns that an event is durable only once it is, and that it was refused once it was', async () => {
    const { clock, send, heard, answers } = daemonSide();
    const acknowledged = () => heard.filter(({ type }) => type !== 'heartbeat');
    for (const seq of [1, 2])
      await send({ type: 'event', linkId: 'a', seq, id: `e${seq}`, kind: 'k', data: null });
    await clock.advance(1_000);
    expect(answers).toHaveLength(2);
    expect(acknowledged()).toEqual([]);
    answers[1]?.reject(new Error('the disk is full'));
    answers[0]?.resolve();
    await clock.advance(1);
    expect(acknowledged()).toEqual([
      { type: 'refused', seq: 2 },
      { type: 'durable', seq: 1 },
    ]);
  });
});

describe('a host ends itself', () => {
  const faulty = [{ id: 'a', protocol: 'faulty', options: {} }];

  it.each([
    ['words no one knows', { type: 'evil' }],
    ['an answer to an event it did not emit', { type: 'durable', seq: 1 }],
    ['a second start', { type: 'start', links: [] }],
  ])('when it hears %s', async (_what, message) => {
    const host = hostSide(faulty);
    await host.start();
    void host.send(message);
    expect(await host.code).toBe(EXIT.nonsense);
  });

  it('when the daemon is silent for 15 s, and not before, for a stalled disk is no reason', async () => {
    const host = hostSide(faulty);
    let code: number | undefined;
    void host.code.then((value) => {
      code = value;
    });
    await host.start();
    await host.clock.advance(14_400);
    expect(code).toBeUndefined();
    await host.clock.advance(1_100);
    expect(code).toBe(EXIT.orphan);
  });

  it('when the daemon has gone', async () => {
    const host = hostSide(faulty);
    await host.start();
    host.close();
    expect(await host.code).toBe(EXIT.orphan);
  });

  it('when a driver does not close, for nothing else would free what it holds', async () => {
    const host = hostSide([...faulty, { id: 'b', protocol: 'loopback', options: {} }]);
    await host.start();
    await host.send(command(host.clock, 1, 'never close'));
    await host.beating(DRIVER_ENDING_DEADLINE_MS / 500 - 1);
    expect(host.of('log').map(({ message }) => message)).not.toContainEqual(expect.stringContaining('ends'));
    await host.beating(1);
    expect(host.of('log').at(-1)?.message).toContain('the driver of link a did not end');
    await host.beating(4);
    expect(await host.code).toBe(EXIT.stuck);
  });

  it('when a driver fails to close, for what it still holds is in the way of the next', async () => {
    const host = hostSide(faulty);
    await host.start();
    await host.send(command(host.clock, 1, 'fail to close'));
    await host.beating(1);
    expect(host.of('log').at(-1)?.message).toContain('the driver of link a could not be closed: ENOSPC');
    expect(await host.code).toBe(EXIT.stuck);
  });

  it('when it is asked to, whatever its drivers do', async () => {
    const host = hostSide(faulty);
    await host.start();
    await host.send(command(host.clock, 1, 'never close'));
    await host.clock.advance(10);
    host.asked.abort();
    await host.beating(20);
    expect(await host.code).toBe(EXIT.asked);
  });
});

describe('a command', () => {
  it('that comes twice is executed once', async () => {
    const host = hostSide([{ id: 'a', protocol: 'faulty', options: {} }]);
    await host.start();
    for (const id of [7, 7, 3, 8]) await host.send(command(host.clock, id, 'echo', id));
    await host.clock.advance(10);
    expect(host.of('done')).toEqual([
      { type: 'done', id: 7, data: 7 },
      { type: 'done', id: 8, data: 8 },
    ]);
  });

  it('whose deadline has passed is not executed', async () => {
    const host = hostSide([{ id: 'a', protocol: 'faulty', options: {} }]);
    await host.start();
    const late = command(host.clock, 1, 'echo');
    await host.clock.advance(1_000);
    await host.send(late);
    await host.clock.advance(10);
    expect(host.of('done')).toEqual([]);
    expect(host.of('failed')).toMatchObject([{ error: { code: 'DEADLINE_PASSED' } }]);
  });

  it('for a link that is not open is not executed', async () => {
    const host = hostSide([{ id: 'a', protocol: 'loopback', options: { reportEveryMs: 'often' } }]);
    await host.start();
    await host.send(command(host.clock, 1, 'echo'));
    await host.clock.advance(10);
    expect(host.of('failed')).toMatchObject([{ error: { code: 'LINK_LOST' } }]);
  });
});

describe('a command that is held', () => {
  const held = (clock: ManualClock, id: number, kind: string) => ({
    ...command(clock, id, kind, id),
    held: true,
  });
  const answers = ({ heard }: { heard: Message[] }) =>
    heard.flatMap(({ type, id, error }) => {
      if (type === 'failed') return [[id, (error as { code: string }).code]];
      return type === 'done' ? [[id, 'done']] : [];
    });
  const opened = async () => {
    const file = join(folder(), 'notes');
    const host = hostSide([{ id: 'a', protocol: 'faulty', options: { file } }]);
    await host.start();
    const given = () => readFileSync(file, 'utf8').split('\n').slice(1, -1);
    return { host, given };
  };

  it('is given at once to a driver that holds it, to any other once it is released', async () => {
    const { host, given } = await opened();
    await host.send(held(host.clock, 1, 'hold'));
    await host.send(held(host.clock, 2, 'echo'));
    await host.send(command(host.clock, 3, 'echo', 3));
    await host.clock.advance(10);
    expect([given(), answers(host)]).toEqual([['a hold', 'a echo'], [[3, 'done']]]);
    for (const id of [1, 2]) await host.send({ type: 'release', id });
    await host.clock.advance(10);
    expect(given()).toEqual(['a hold', 'a echo', 'a echo']);
    expect(answers(host).slice(1)).toEqual(
      expect.arrayContaining([
        [1, 'done'],
        [2, 'done'],
      ]),
    );
  });

  it.each(['cancel', 'silence'])('ends unsent by %s, and is not released after that', async (how) => {
    const { host, given } = await opened();
    for (const [id, kind] of [
      [1, 'hold'],
      [2, 'echo'],
    ] as const)
      await host.send(held(host.clock, id, kind));
    await host.clock.advance(10);
    if (how === 'cancel') for (const id of [1, 2]) await host.send({ type: 'cancel', id });
    else await host.clock.advance(1_000);
    await host.clock.advance(10);
    for (const id of [1, 2]) await host.send({ type: 'release', id });
    await host.clock.advance(10);
    const late = 'DEADLINE_PASSED';
    expect(answers(host)).toEqual(
      expect.arrayContaining([
        [1, late],
        [2, late],
      ]),
    );
    expect(given()).toEqual(['a hold']);
  });

  it('was not sent when its link is lost, whatever its driver says', async () => {
    const { host } = await opened();
    await host.send(held(host.clock, 1, 'deaf hold'));
    await host.clock.advance(10);
    await host.send(command(host.clock, 2, 'break'));
    await host.clock.advance(10);
    expect(answers(host)).toContainEqual([1, 'DEADLINE_PASSED']);
  });

  const give = ({ conversation }: ReturnType<typeof daemonSide>, released: Promise<void>) =>
    conversation.execute('a', { kind: 'unlock', data: null, timeoutMs: 1_000, released }, never);
  const acknowledged = ({ heard }: { heard: Message[] }) =>
    heard.map(({ type }) => type).filter((one) => one !== 'heartbeat');

  it('is released when its caller says so, and withdrawn when it does not come to that', async () => {
    const daemon = daemonSide();
    const [one, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    for (const { promise } of [one, other]) give(daemon, promise).catch(() => undefined);
    await daemon.clock.advance(1);
    expect(acknowledged(daemon)).toEqual(['command', 'command']);
    other.reject(new Error('not stored'));
    await daemon.clock.advance(1);
    one.resolve();
    await daemon.clock.advance(1);
    expect(daemon.heard.slice(-2)).toEqual([
      { type: 'cancel', id: 2 },
      { type: 'release', id: 1 },
    ]);
  });

  it('was not sent when its host ends before it is released, and is unknown after that', async () => {
    const daemon = daemonSide();
    const ends = Promise.allSettled([give(daemon, new Promise(() => {})), give(daemon, Promise.resolve())]);
    await daemon.clock.advance(1);
    daemon.conversation[Symbol.dispose]();
    expect(await ends).toMatchObject([
      { reason: { code: 'LINK_LOST' } },
      { reason: { code: 'OUTCOME_UNKNOWN' } },
    ]);
  });
});
