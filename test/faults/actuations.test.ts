/**
 * The daemon killed with -9 while it unlocks a lock and fires a relay, at moments that the wire and the database show.
 * Afterwards each was ordered to open once at most over both lives, and in time; and all that can be known of it is reported.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MAKES } from '../simulators/zigbee/makes.ts';
import { type ActuationSite, openActuationSite, type SiteDoor, waitFor } from './actuation-site.ts';

/**
 * The gateway answers a moment after it has stored the outcome. A loop that looks without a pause meets every other; one
 * that shares its processor with ten meets one in thirty.
 */
const TRIES_MAX = 240;
/** Of the event loop, from the bytes of an answer to the answer. */
const TURNS_TO_READ = 50;
const STOPPED = 'the gateway was stopped before the outcome was known';

/** The daemon and its hosts are started again in each test. */
vi.setConfig({ testTimeout: 120_000 });

let all: ActuationSite;

const now = () => Number(process.hrtime.bigint()) / 1e6;
/** What an unlock whose gateway dies gets instead of an answer. */
const unanswered = (unlocking: Promise<unknown>) =>
  unlocking.then(
    () => 'an answer',
    () => 'none',
  );

interface Attempt {
  door: SiteDoor;
  askedMs: number;
  /** How often it had been ordered to open before, and what the newest entry of the audit belonged to. */
  before: number;
  auditedBefore: string | undefined;
  answer: Promise<string>;
}

async function ask(door: SiteDoor): Promise<Attempt> {
  const before = (await door.heard()).length;
  const auditedBefore = (await door.audited()).at(-1)?.correlationId;
  return { door, before, auditedBefore, askedMs: now(), answer: unanswered(door.unlock()) };
}

/** The next life: what it says of the attempt, and that the door can be unlocked again. */
async function check(
  { door, before, auditedBefore, askedMs }: Attempt,
  expected: { outcome: string; times: number[] },
) {
  await door.isReady();
  const known = { outcome: expected.outcome, reason: expected.outcome === 'unknown' ? STOPPED : null };
  expect(await door.lastUnlock()).toMatchObject({ ...known, via: door.via });
  // The page has the newest hundred, and there may have been more tries.
  const audited = await door.audited();
  const entries = audited.slice(
    audited.findLastIndex(({ correlationId }) => correlationId === auditedBefore) + 1,
  );
  const outcomes = ['accepted', expected.outcome === 'unknown' ? 'unknown' : 'done'];
  // A lock repeats its event until it is acknowledged: the next life may learn by it that the lock has opened.
  if (entries.length === 3 && expected.outcome === 'unknown') outcomes.push('done');
  expect(entries.map((entry) => entry.outcome)).toEqual(outcomes);
  expect(new Set(entries.map(({ correlationId }) => correlationId)).size).toBe(1);

  expect(await door.unlock()).toMatchObject({ status: 200, body: { outcome: 'confirmed', via: door.via } });
  const heard = (await door.heard()).slice(before, -1);
  expect(expected.times).toContain(heard.length);
  if (entries.length === 3) expect(heard).toHaveLength(1);
  for (const heardMs of heard) expect(heardMs - askedMs).toBeLessThan(door.deadlineMs);
}

async function restart(): Promise<void> {
  await all.site.daemon.start();
  expect(await all.verifyAudit()).toMatch(/^0 ✓/);
}

describe.each(Object.values(MAKES))('with $called', ({ adapter }) => {
  beforeAll(async () => {
    all = await openActuationSite({ adapter });
  }, 90_000);
  afterAll(() => all?.[Symbol.asyncDispose]());

  it('killed when the intent is stored and its host has not taken the command', async () => {
    const hosts = all.hostPids();
    for (const pid of hosts) process.kill(pid, 'SIGSTOP');
    const attempts = await Promise.all(all.doors.map(ask));
    for (const { door } of attempts)
      await waitFor(async () => expect(await door.lastUnlock()).toMatchObject({ outcome: null }));
    await all.site.daemon.kill();
    for (const pid of hosts) process.kill(pid, 'SIGCONT');
    expect(await Promise.all(attempts.map(({ answer }) => answer))).toEqual(['none', 'none']);
    await restart();
    for (const attempt of attempts) await check(attempt, { outcome: 'unknown', times: [0, 1] });
  });

  it('killed when lock and relay have done it and no one has heard so', async () => {
    for (const door of all.doors) await door.mute(true);
    const attempts = await Promise.all(all.doors.map(ask));
    await Promise.all(
      attempts.map(({ door, before }) =>
        waitFor(async () => expect(await door.heard()).toHaveLength(before + 1)),
      ),
    );
    await all.site.daemon.kill();
    expect(await Promise.all(attempts.map(({ answer }) => answer))).toEqual(['none', 'none']);
    for (const door of all.doors) await door.mute(false);
    await restart();
    for (const attempt of attempts) await check(attempt, { outcome: 'unknown', times: [1] });
  });

  it.each([
    ['lock', 0],
    ['relay', 1],
  ] as const)('killed when the outcome of the %s is stored and not answered', async (_, index) => {
    const attempt = await storedAndUnanswered(all.doors[index]);
    await all.site.daemon.kill();
    expect(await attempt.answer).toBe('none');
    await restart();
    await check(attempt, { outcome: 'confirmed', times: [1] });
  });
});

/** The daemon is stopped with SIGSTOP when it returns. */
async function storedAndUnanswered(door: SiteDoor): Promise<Attempt> {
  const { pid } = all.site.daemon;
  // The other door's test waited for the other door only.
  await door.isReady();
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    let isAnswered = false;
    const last = door.stored()?.at;
    const attempt = await ask(door);
    void attempt.answer.then(() => (isAnswered = true));
    while (door.stored()?.at === last) await oneTurn();
    while (door.stored()?.outcome === null);
    process.kill(pid, 'SIGSTOP');
    while (!/^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
    // What it sent is in the sockets of this process, which are read once a turn; TLS and HTTP take some turns more.
    for (let turn = 0; turn < TURNS_TO_READ; turn += 1) await oneTurn();
    if (!isAnswered) return attempt;
    process.kill(pid, 'SIGCONT');
  }
  throw new Error(`the outcome was stored and not answered in none of ${TRIES_MAX} unlocks`);
}

const oneTurn = () => new Promise((resolve) => setImmediate(resolve));
