/** What is sent to a lock that misbehaves, and what is kept of it: against a lock that answers as a test says. */
import { expect, it } from 'vitest';
import { LOCK, unlockOf } from '../../test/drivers/zigbee/gateway.ts';
import {
  answered,
  command,
  isBoltRead,
  OPERATING_MODE,
  openPlayed as open,
  RELOCK_TIME,
  SILENT,
} from '../../test/drivers/zigbee/played-lock.ts';
import type { ZclReply, ZclRequest } from './radio.ts';

const lacksTimed = ({ command: name }: ZclRequest) =>
  name === 'unlockWithTimeout' ? answered({ cmdId: 3, statusCode: 0x81 }) : undefined;

it('goes on with a plain unlock when the lock proves to have no timed one, and remembers that', async () => {
  const { run, sent, meta } = await open({ reply: lacksTimed });
  const data = { ...unlockOf(LOCK), gatewayRelocks: true };
  expect(await run('unlock', data)).toEqual({ outcome: 'confirmed', relock: 'gateway' });
  expect(sent).toEqual(['unlockWithTimeout', 'unlockDoor']);
  expect(meta).toMatchObject({ timedUnlock: false });
  await run('unlock', data);
  expect(sent.slice(2)).toEqual(['unlockDoor']);
});

it('opens nothing when the timed unlock is refused and no one else locks the door again', async () => {
  const { run, sent, meta } = await open({ reply: lacksTimed, meta: { timedUnlock: true } });
  await expect(run('unlock', unlockOf(LOCK))).rejects.toMatchObject({ code: 'REFUSED' });
  expect(sent).toEqual(['unlockWithTimeout']);
  // It had said that it has it: it is asked once more.
  expect(meta.timedUnlock).toBeNull();
});

it.each([0x01, 0x7e, 0x80, 0x87])(
  'does not unlock plainly after another refusal (status %i)',
  async (status) => {
    const { run, sent } = await open({ reply: () => answered({ status }) });
    await expect(run('unlock', { ...unlockOf(LOCK), gatewayRelocks: true })).rejects.toMatchObject({
      code: 'REFUSED',
    });
    expect(sent).toEqual(['unlockWithTimeout']);
  },
);

it('gives back at the end what an earlier version had overwritten, once', async () => {
  const played = { meta: { relockSeconds: 45 }, attributes: { [RELOCK_TIME]: 0, 0: 2 } };
  const { run, attributes, meta } = await open(played);
  expect(await run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(attributes[RELOCK_TIME]).toBe(45);
  expect(meta.relockSeconds).toBeNull();
  // From now on a 0 is what somebody wants.
  attributes[RELOCK_TIME] = 0;
  await run('endStandOpen');
  expect(attributes[RELOCK_TIME]).toBe(0);
});

it('ends the passage mode that an earlier version set, and leaves another mode alone', async () => {
  const { run, attributes } = await open({ attributes: { [OPERATING_MODE]: 4, 38: 0b1_1111 } });
  await run('endStandOpen');
  expect(attributes).toMatchObject({ [OPERATING_MODE]: 0, 0: 1 });
  attributes[OPERATING_MODE] = 1;
  await run('standOpen');
  expect(attributes[OPERATING_MODE]).toBe(4);
  await run('endStandOpen');
  expect(attributes[OPERATING_MODE]).toBe(1);
});

it.each(['write', 'read'])(
  'locks the door although a %s before it fails, and says that it failed',
  async (name) => {
    const reply = (request: ZclRequest) =>
      request.command === name && !isBoltRead(request) ? SILENT : undefined;
    const meta = { standing: { operatingMode: 0 } };
    const { run, attributes, sent } = await open({
      reply,
      meta,
      attributes: { [OPERATING_MODE]: 4, 0: 2 },
    });
    await expect(run('endStandOpen')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(sent).toContain('lockDoor');
    expect(attributes[0]).toBe(1);
  },
);

it('does not say that nothing was sent at the end of standing open once a lock command was sent', async () => {
  const { run, sent } = await open({
    meta: { standing: { autoRelockTime: 60 } },
    reply: (request) =>
      request.command === 'read' && !isBoltRead(request)
        ? { kind: 'unsent', reason: 'no memory' }
        : undefined,
  });
  await expect(run('endStandOpen')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(sent).toEqual(['read', 'lockDoor', 'read', 'read']);
});

it('does not say that nothing was sent once the lock may stand open', async () => {
  const late = ({ command: name }: ZclRequest): ZclReply | undefined =>
    name === 'unlockDoor' ? { kind: 'late' } : undefined;
  const mode = { reply: late, attributes: { 38: 0b1_0001, [OPERATING_MODE]: 0 } };
  await expect((await open(mode)).run('standOpen')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  const silent = ({ command: name }: ZclRequest) => (name === 'write' ? SILENT : undefined);
  const unanswered = await open({ reply: silent, attributes: { [RELOCK_TIME]: 60 } });
  const end = unanswered.run('standOpen').catch((error: unknown) => error);
  await unanswered.clock.advance(30_000);
  expect(await end).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  // Kept before it was overwritten.
  expect(unanswered.meta).toMatchObject({ standing: { autoRelockTime: 60 } });
  // What it has taken is read when it is heard.
  expect(unanswered.readAgain).toEqual([LOCK]);
});

it('says that nothing was sent where the first frame of standing open was not sent', async () => {
  const reply = ({ command: name }: ZclRequest): ZclReply | undefined =>
    name === 'unlockDoor' ? { kind: 'unsent', reason: 'it is no child of the coordinator' } : undefined;
  const { run, sent, readAgain } = await open({ reply, attributes: { 38: 0b1 } });
  await expect(run('standOpen')).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect([sent, readAgain]).toEqual([['read', 'unlockDoor'], []]);
});

it.each([
  ['arrived although its answer was lost', true, ['write', 'read', 'unlockDoor']],
  ['was lost', false, ['write', 'read', 'write', 'unlockDoor']],
])('settles a write of the relock time that %s, and goes on', async (_, arrives, frames) => {
  let writes = 0;
  const reported = { lockState: 1, autoRelockTime: 60, operatingMode: 0, supportedOperatingModes: 0b1 };
  const { begin, clock, sent, attributes } = await open({
    reported,
    attributes: { [RELOCK_TIME]: 60 },
    reply({ command: name }) {
      if (name === 'write') writes += 1;
      if (name !== 'write' || writes > 1) return undefined;
      if (arrives) attributes[RELOCK_TIME] = 0;
      return SILENT;
    },
  });
  const { end } = begin('standOpen', command, 60_000);
  await clock.advance(5_000);
  expect(await end).toEqual({ outcome: 'confirmed' });
  expect([sent, attributes[RELOCK_TIME]]).toEqual([frames, 0]);
});

it('reads an unanswered write of the relock time back as soon as the lock says anything', async () => {
  const reported = { lockState: 1, autoRelockTime: 60, operatingMode: 0, supportedOperatingModes: 0b1 };
  const { begin, clock, sent, say, requests, attributes } = await open({
    reported,
    attributes: { [RELOCK_TIME]: 60 },
    reply({ command: name }) {
      if (name !== 'write') return undefined;
      attributes[RELOCK_TIME] = 0;
      return SILENT;
    },
  });
  const { end } = begin('standOpen', command, 60_000);
  await clock.advance(0);
  say({});
  await clock.advance(500);
  expect(await end).toEqual({ outcome: 'confirmed' });
  expect([sent, requests[0]?.known?.aborted]).toEqual([['write', 'read', 'unlockDoor'], true]);
});

it('does not say that nothing was sent when the second write cannot be sent', async () => {
  let writes = 0;
  const { begin, clock } = await open({
    attributes: { [RELOCK_TIME]: 60 },
    reply({ command: name }) {
      if (name === 'write') writes += 1;
      return name === 'write' ? (writes > 1 ? { kind: 'unsent', reason: 'no memory' } : SILENT) : undefined;
    },
  });
  const ended = begin('standOpen', command, 60_000).end.catch((error: unknown) => error);
  await clock.advance(5_000);
  expect(await ended).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
});

it('does not write the passage mode twice, and unlocks nothing before it is read back', async () => {
  const { begin, clock, sent } = await open({
    attributes: { 38: 0b1_0001, [OPERATING_MODE]: 0 },
    reply: ({ command: name }) => (name === 'write' ? SILENT : undefined),
  });
  const { end } = begin('standOpen', command, 60_000);
  const ended = end.catch((error: unknown) => error);
  await clock.advance(5_000);
  expect(await ended).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(sent).toEqual(['read', 'write', 'read']);
});

it('leaves a lock as it was when it does not stand open', async () => {
  const refuses = ({ command: name }: ZclRequest) =>
    name === 'unlockDoor' ? answered({ status: 0x01 }) : undefined;
  const { run, attributes, meta } = await open({ reply: refuses, attributes: { [RELOCK_TIME]: 60 } });
  await expect(run('standOpen')).rejects.toMatchObject({ code: 'REFUSED' });
  expect(attributes[RELOCK_TIME]).toBe(60);
  expect(meta.standing).toBeNull();
  const readOnly = ({ command: name, payload }: ZclRequest) =>
    name === 'write'
      ? answered([{ status: 0x88, attrId: (payload as { attrId: number }[])[0]?.attrId }])
      : undefined;
  const stubborn = await open({ reply: readOnly, attributes: { [RELOCK_TIME]: 60 } });
  await expect(stubborn.run('standOpen')).rejects.toMatchObject({ code: 'REFUSED' });
  expect(stubborn.sent).not.toContain('unlockDoor');
  expect(stubborn.meta).toMatchObject({ standOpenRefused: true });
});

it('reads nothing that the lock has reported before, and restores all of it in one frame', async () => {
  const reported = { lockState: 1, autoRelockTime: 60, operatingMode: 0, supportedOperatingModes: 0b1 };
  const { run, sent, requests, attributes } = await open({ reported, attributes: { [RELOCK_TIME]: 60 } });
  expect(await run('standOpen')).toEqual({ outcome: 'confirmed' });
  expect(sent).toEqual(['write', 'unlockDoor']);
  // As if it had been in passage mode, too.
  attributes[OPERATING_MODE] = 4;
  expect(await run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(sent.slice(2)).toEqual(['read', 'write', 'lockDoor', 'read', 'read']);
  expect(requests[3]?.payload).toMatchObject([
    { attrId: OPERATING_MODE, attrData: 0 },
    { attrId: RELOCK_TIME, attrData: 60 },
  ]);
});

it('gives a lock that sleeps the time of its parent to say in which state it is', async () => {
  const quiet = ({ command: name }: ZclRequest) =>
    name === 'lockDoor' ? answered({ status: 0 }) : undefined;
  const { run, clock, requests } = await open({ reply: quiet });
  const locking = run('lock');
  await clock.advance(3_000);
  expect(await locking).toEqual({ outcome: 'confirmed' });
  expect(requests[1]).toMatchObject({ command: 'read', timeoutMs: 8_000 });
});

it('reads the relock time again when a lock that should lock by itself gets a lock command', async () => {
  const relocking = await open({ reported: { autoRelockTime: 10 } });
  await relocking.run('lock');
  expect(relocking.readAgain).toEqual([LOCK]);
  const never = await open({ reported: { autoRelockTime: 0 } });
  await never.run('lock');
  expect(never.readAgain).toEqual([]);
});

it('changes the mode of a lock by one command at a time, and sends nothing of the second', async () => {
  const answer = Promise.withResolvers<undefined>();
  const { begin, run, sent } = await open({ before: () => answer.promise });
  const first = begin('standOpen').end;
  await expect(run('standOpen')).rejects.toMatchObject({
    code: 'BUSY',
    message: 'the lock changes its mode already: wait for the outcome of that, and send it again',
  });
  answer.resolve(undefined);
  expect(await first).toEqual({ outcome: 'confirmed' });
  expect(sent.filter((name) => name === 'unlockDoor')).toHaveLength(1);
});

it('says that nothing was sent when a read before standing open is not answered', async () => {
  const { run, sent } = await open({ reply: ({ command: name }) => (name === 'read' ? SILENT : undefined) });
  await expect(run('standOpen')).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect(sent).toEqual(['read']);
});

it('is ended when the lock is seen locked, although a read failed and nothing is to be given back', async () => {
  const reply = (request: ZclRequest) =>
    request.command === 'read' && !isBoltRead(request) ? SILENT : undefined;
  const { run } = await open({ reply });
  expect(await run('endStandOpen')).toEqual({ outcome: 'confirmed' });
});

it('gives back after locking what a lost read kept it from giving back before', async () => {
  let reads = 0;
  const { run, attributes, sent } = await open({
    meta: { standing: { autoRelockTime: 60 } },
    attributes: { [RELOCK_TIME]: 0, 0: 2 },
    reply({ command: name }) {
      if (name === 'read') reads += 1;
      return name === 'read' && reads === 1 ? SILENT : undefined;
    },
  });
  expect(await run('endStandOpen')).toEqual({ outcome: 'confirmed' });
  expect(sent.slice(0, 5)).toEqual(['read', 'lockDoor', 'read', 'read', 'write']);
  expect(attributes[RELOCK_TIME]).toBe(60);
});
