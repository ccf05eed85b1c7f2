/** What confirms a command to a bolt, and what does not: what the lock did before it, and what it says late. */
import { expect, it } from 'vitest';
import { LOCK, unlockOf } from '../../test/drivers/zigbee/gateway.ts';
import {
  answered,
  command,
  isBoltRead,
  openPlayed as open,
  SILENT,
} from '../../test/drivers/zigbee/played-lock.ts';
import type { Facts } from './messages.ts';
import type { ZclReply, ZclRequest } from './radio.ts';

const operated: Facts = { unlockedByRadio: true, lockState: 2 };
const UNKNOWN = { code: 'OUTCOME_UNKNOWN' };

it.each(['unlock', 'standOpen', 'lock'] as const)(
  'does not take what an earlier unlock does late for its own: %s after an unlock',
  async (kind) => {
    let isSilent = true;
    const reported = { lockState: 1, autoRelockTime: 0, timedUnlock: 1 };
    const { begin, run, clock, say, attributes } = await open({
      reported,
      // The bolt is where the first left it.
      attributes: { 0: 2 },
      reply: (request) => (isSilent && !isBoltRead(request) ? SILENT : undefined),
    });
    const late: Facts = kind === 'lock' ? { lockState: 1 } : operated;
    /** The lock shows `late`, does not answer, and the time of the command is over. */
    const unanswered = async (name: typeof kind) => {
      const { end, stop } = begin(name, name === 'unlock' ? unlockOf(LOCK) : command);
      const ended = end.catch((error: unknown) => error);
      await clock.advance(1);
      say(late);
      await clock.advance(2_000);
      stop();
      return ended;
    };
    const first = begin('unlock', unlockOf(LOCK));
    first.stop();
    await expect(first.end).rejects.toMatchObject(UNKNOWN);
    expect(await unanswered(kind)).toMatchObject(UNKNOWN);
    // When no parent can hold the first any more, the lock need not answer.
    await clock.advance(35_000);
    if (kind === 'lock') attributes[0] = 1;
    expect(await unanswered(kind)).toEqual(expect.objectContaining({ outcome: 'confirmed' }));
    isSilent = false;
    expect(await run('lock')).toEqual({ outcome: 'confirmed' });
  },
);

it('is not confirmed by the event of an unlock that was answered before', async () => {
  let reply: (request: ZclRequest) => ZclReply | undefined = () => undefined;
  const lock = await open({ reply: (request) => reply(request) });
  const { begin, say, clock, attributes } = lock;
  // The event of the first one is lost, and repeated until it is acknowledged.
  reply = ({ command: name }) => {
    if (name === 'read') return undefined;
    attributes[0] = 2;
    queueMicrotask(() => say({ lockState: 2 }));
    return answered({ status: 0 });
  };
  expect(await lock.run('unlock', unlockOf(LOCK))).toMatchObject({ outcome: 'confirmed' });
  const jam = async () => {
    reply = ({ command: name }) => {
      if (name === 'read') return undefined;
      attributes[0] = 0;
      say({ unlockedByRadio: true });
      return answered({ status: 0 });
    };
    const { end } = begin('unlock', unlockOf(LOCK));
    await clock.advance(3_000);
    return end;
  };
  expect(await jam()).toMatchObject({ outcome: 'jammed' });
  // No event can be missing any more: the next one is of the next unlock, which the lock need not answer.
  await clock.advance(300_000);
  reply = () => SILENT;
  const { end } = begin('unlock', unlockOf(LOCK));
  await clock.advance(1);
  say({ unlockedByRadio: true });
  expect(await end).toMatchObject({ outcome: 'confirmed' });
});

it('does not take what a process before this one has sent for its own', async () => {
  const { begin, clock, say } = await open({ reply: () => SILENT, startedMs: 34_000 });
  const unlockAfter = async (earlierAt: number | null) => {
    const { end, stop } = begin('unlock', { ...unlockOf(LOCK), earlierAt });
    const ended = end.catch((error: unknown) => error);
    await clock.advance(1);
    say(operated);
    stop();
    return ended;
  };
  expect(await unlockAfter(-1)).toMatchObject(UNKNOWN);
  // Its frame cannot arrive any more, but its event can.
  await clock.advance(120_000);
  expect(await unlockAfter(-1)).toMatchObject(UNKNOWN);
  await clock.advance(300_000);
  expect(await unlockAfter(-1)).toMatchObject({ outcome: 'confirmed' });
});

it('is confirmed by its event right after a start when nothing was sent to the lock before', async () => {
  const { begin, clock, say } = await open({ reply: () => SILENT, startedMs: 1_000 });
  const { end } = begin('unlock', { ...unlockOf(LOCK), earlierAt: null });
  await clock.advance(1);
  say(operated);
  expect(await end).toMatchObject({ outcome: 'confirmed' });
});

it('is not confirmed, minutes later, by the event of an unlock that its bolt alone had confirmed', async () => {
  let isSilent = false;
  const { begin, run, say, clock, attributes } = await open({
    reply({ command: name }) {
      if (isSilent) return name === 'read' ? undefined : SILENT;
      if (name === 'read') return undefined;
      attributes[0] = 2;
      queueMicrotask(() => say({ lockState: 2 }));
      return answered({ status: 0 });
    },
  });
  expect(await run('unlock', unlockOf(LOCK))).toMatchObject({ outcome: 'confirmed' });
  // It has locked again by itself, and does not get the next one.
  await clock.advance(60_000);
  attributes[0] = 1;
  isSilent = true;
  const { end, stop } = begin('unlock', unlockOf(LOCK));
  const ended = end.catch((error: unknown) => error);
  await clock.advance(1);
  say(operated);
  await clock.advance(5_000);
  stop();
  expect(await ended).toMatchObject(UNKNOWN);
});

it.each([
  ['unlock', 2, 1],
  ['standOpen', 2, 1],
  ['lock', 1, 2],
] as const)(
  'is not confirmed by a report that the lock sent before it: %s',
  async (kind, lockState, bolt) => {
    const accepts = ({ command: name }: ZclRequest) =>
      name === 'read' ? undefined : answered({ status: 0 });
    const { begin, clock, say, sent } = await open({ reply: accepts, attributes: { 0: bolt } });
    const { end } = begin(kind, kind === 'unlock' ? unlockOf(LOCK) : command);
    await clock.advance(1);
    say({ lockState });
    await clock.advance(6_000);
    expect(await end).toMatchObject({ outcome: 'accepted' });
    expect(sent.filter((name) => name !== 'read')).toHaveLength(1);
  },
);

it('is not confirmed by an old report while a lock command is lost', async () => {
  const { begin, clock, say } = await open({
    reply: ({ command: name }) => (name === 'read' ? undefined : SILENT),
    attributes: { 0: 2 },
  });
  const { end, stop } = begin('lock');
  const ended = end.catch((error: unknown) => error);
  await clock.advance(1);
  say({ lockState: 1 });
  await clock.advance(10_000);
  stop();
  expect(await ended).toMatchObject(UNKNOWN);
});

it('is not jammed by the alarm of an earlier one where the bolt moves', async () => {
  const { begin, clock, say, attributes } = await open({
    reply({ command: name }) {
      if (name === 'read') return undefined;
      say({ jam: true });
      return answered({ status: 0 });
    },
  });
  const { end } = begin('unlock', unlockOf(LOCK));
  await clock.advance(1_000);
  attributes[0] = 2;
  await clock.advance(1_000);
  expect(await end).toMatchObject({ outcome: 'confirmed' });
});

it('reads the bolt at once when an earlier command may have made the report that came before the answer', async () => {
  const { run, say, clock } = await open({
    startedMs: 0,
    reply(request) {
      if (request.command === 'read') return undefined;
      say({ lockState: 2 });
      return answered({ status: 0 });
    },
    attributes: { 0: 2 },
  });
  const begun = clock.monotonic();
  expect(await run('unlock', { ...unlockOf(LOCK), earlierAt: -1 })).toMatchObject({ outcome: 'confirmed' });
  expect(clock.monotonic()).toBe(begun);
});

it('reads the bolt again after a lock command that no answer came to: a parent may deliver it later', async () => {
  const { begin, clock, readAgain } = await open({ reply: () => SILENT });
  const { end, stop } = begin('lock');
  const outcome = end.catch(({ code }) => code);
  await clock.advance(30_000);
  stop();
  expect(await outcome).toBe('OUTCOME_UNKNOWN');
  expect(readAgain).toEqual([LOCK]);
});

it('says where the bolt is by its answer, and keeps no command waiting for that', async () => {
  let isSilent = false;
  let isHeld = false;
  const { run, attributes, begin, requests, clock } = await open({
    before: () => (isHeld ? new Promise(() => undefined) : Promise.resolve()),
    reply: () => (isSilent ? SILENT : undefined),
  });
  expect(await run('readBolt', { hwId: LOCK })).toEqual({ lockState: 'locked' });
  attributes[0] = 2;
  expect(await run('readBolt', { hwId: LOCK })).toEqual({ lockState: 'unlocked' });
  isSilent = true;
  await expect(run('readBolt', { hwId: LOCK })).rejects.toMatchObject({ code: 'NO_REPLY' });
  isHeld = true;
  const asked = begin('readBolt', { hwId: LOCK }).end.catch(({ code }) => code);
  await clock.advance(0);
  begin('lock').end.catch(() => undefined);
  expect(requests.at(-2)).toMatchObject({ command: 'read', known: { aborted: true } });
  expect(await asked).toBe('NO_REPLY');
});

it('is locked by the event of the lock that names the radio, without a question, where that can be of no other', async () => {
  let isAway = false;
  let isHere = Promise.withResolvers<void>();
  const { begin, clock, say, sent } = await open({
    before: async () => isAway && isHere.promise,
    reply: ({ command: name }) => (isAway || name === 'read' ? SILENT : answered({ status: 0 })),
  });
  const lockBy = async (eventConfirms: boolean, facts: Facts = { lockedByRadio: true }) => {
    const { end, stop } = begin('lock', { ...command, eventConfirms });
    const ended = end.catch((error: unknown) => error);
    await clock.advance(1);
    say(facts);
    await clock.advance(2_000);
    isHere.resolve();
    await clock.advance(5_000);
    stop();
    return ended;
  };
  expect(await lockBy(true)).toMatchObject({ outcome: 'confirmed' });
  expect(sent).toEqual(['lockDoor']);
  expect(await lockBy(false)).toMatchObject({ outcome: 'accepted' });
  // It does not answer although it speaks, and is sent the command twice: a second event may come of it.
  isAway = true;
  isHere = Promise.withResolvers();
  expect(await lockBy(false, { isThere: true })).toMatchObject(UNKNOWN);
  expect(sent.filter((name) => name === 'lockDoor')).toHaveLength(4);
  isAway = false;
  expect(await lockBy(true)).toMatchObject({ outcome: 'accepted' });
  await clock.advance(300_000);
  expect(await lockBy(true)).toMatchObject({ outcome: 'confirmed' });
});
