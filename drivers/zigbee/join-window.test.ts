/** The join window while the coordinator takes its time: what was said last is in force, and nothing is open after its end. */
import { expect, it } from 'vitest';
import { LOCK } from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openJoining } from './joining.ts';
import { crc16 } from './lock-cluster.ts';
import type { Radio } from './radio.ts';

const CODE = withCrc('00112233445566778899aabbccddeeff');

function withCrc(code: string): string {
  const bytes = Buffer.from(`${code}0000`, 'hex');
  bytes.writeUInt16LE(crc16(bytes.subarray(0, -2)), bytes.length - 2);
  return bytes.toString('hex');
}

/** A coordinator that answers at once, but for what a test holds. */
function openTestbed() {
  const clock = manualClock();
  const asked: string[] = [];
  const answers = new Map<string, Promise<void>>();
  const shown: boolean[] = [];
  const failures: string[] = [];
  let kept: Record<string, unknown> = {};
  const ask = async (what: string) => {
    asked.push(what);
    await answers.get(what);
  };
  const remember = (_: string, more: object) => {
    kept = { ...kept, ...more };
  };
  const radio = {
    hwId: 'coordinator',
    meta: () => kept,
    remember,
    rememberFirst: remember,
    permitJoin: (seconds: number) => ask(`permit ${seconds}`),
    addInstallCode: () => ask('code'),
    removeInstallCode: () => ask('no code'),
    device: () => undefined,
  } as unknown as Radio;
  const joining = openJoining({
    context: { clock, log: { debug() {}, info() {}, warn() {}, error() {} } },
    radio: () => radio,
    knownLocks: [],
    changed: () => void shown.push(joining.isOpen()),
    failed: (ieee, reason) => void failures.push(`${ieee} ${reason}`),
    signal: new AbortController().signal,
  });
  const open = (seconds: number, code?: string) => {
    const installCodes = code === undefined ? [] : [{ hwId: LOCK, code }];
    const opened = joining.open({ seconds, allowed: [], installCodes });
    opened.catch(() => undefined);
    return opened;
  };
  const hold = (what: string) => {
    const answer = Promise.withResolvers<void>();
    answer.promise.catch(() => undefined);
    answers.set(what, answer.promise);
    return answer;
  };
  const permits = () => asked.filter((one) => one.startsWith('permit'));
  return { clock, joining, open, hold, asked, permits, shown, failures };
}

it('that is closed while its install codes are given is not opened any more', async () => {
  const { clock, joining, open, hold, permits } = openTestbed();
  const code = hold('code');
  const opening = open(60, CODE);
  await clock.advance(0);
  await open(0);
  code.resolve();
  await opening;
  expect(permits()).toEqual(['permit 0']);
  expect(joining.isOpen()).toBe(false);
});

it('is sent to a router that joins in it, for as long as it lasts yet, and to none after it', async () => {
  const { clock, joining, open, permits } = openTestbed();
  await open(60);
  await clock.advance(20_000);
  joining.routerJoined();
  await clock.advance(0);
  expect(permits()).toEqual(['permit 60', 'permit 40']);
  await clock.advance(40_000);
  joining.routerJoined();
  await clock.advance(0);
  expect(permits()).toEqual(['permit 60', 'permit 40', 'permit 0']);
});

it('is opened when the one before has been closed, and not in the midst of that', async () => {
  const { clock, joining, open, hold, permits } = openTestbed();
  const closed = hold('permit 0');
  await open(10);
  await clock.advance(10_000);
  const opening = open(60);
  await clock.advance(0);
  expect(permits()).toEqual(['permit 10', 'permit 0']);
  closed.resolve();
  await opening;
  expect(permits()).toEqual(['permit 10', 'permit 0', 'permit 60']);
  expect(joining.isOpen()).toBe(true);
});

it('that cannot be opened takes none with it that was opened meanwhile', async () => {
  const { clock, joining, open, hold } = openTestbed();
  const code = hold('code');
  const failing = open(60, CODE);
  await clock.advance(0);
  await open(100);
  code.reject(new Error('no room'));
  await expect(failing).rejects.toThrow('no room');
  expect(joining.isOpen()).toBe(true);
  await clock.advance(100_000);
  expect(joining.isOpen()).toBe(false);
});

it('that cannot be opened leaves none open that was before it', async () => {
  const { open, hold, permits, clock } = openTestbed();
  await open(200);
  hold('code').reject(new Error('no room'));
  await expect(open(60, CODE)).rejects.toThrow('no room');
  await clock.advance(0);
  expect(permits()).toEqual(['permit 200', 'permit 0']);
});

it('ends at its time, however long it took to open', async () => {
  const { clock, open, hold, permits } = openTestbed();
  const code = hold('code');
  const opening = open(60, CODE);
  await clock.advance(20_000);
  code.resolve();
  await opening;
  expect(permits()).toEqual(['permit 40']);
  await clock.advance(40_000);
  expect(permits()).toEqual(['permit 40', 'permit 0']);
});

it('is shown closed at its end though the coordinator does not answer then', async () => {
  const { clock, open, hold, shown } = openTestbed();
  await open(10);
  hold('permit 0').reject(new Error('no answer'));
  await clock.advance(10_000);
  expect(shown).toEqual([true, false]);
});

it('takes no code back of a lock that comes in at its end, which has a key of its own in that place', async () => {
  const { clock, joining, open, asked, failures } = openTestbed();
  await open(10, CODE);
  await clock.advance(9_900);
  expect(joining.mayJoin(LOCK)).toBe(true);
  await clock.advance(1_000);
  expect(joining.isOpen()).toBe(false);
  expect(asked).not.toContain('no code');
  joining.spoke(LOCK);
  await clock.advance(60_000);
  expect([asked.includes('no code'), failures]).toEqual([false, []]);
});

it('takes the code back of a lock that wanted to come in at its end and did not', async () => {
  const { clock, joining, open, asked, failures } = openTestbed();
  await open(10, CODE);
  await clock.advance(9_900);
  joining.mayJoin(LOCK);
  await clock.advance(20_000);
  expect(asked.filter((one) => one === 'no code')).toHaveLength(1);
  expect(failures).toEqual([`${LOCK} installCode`]);
});
