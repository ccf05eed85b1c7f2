import { expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { LockEvent, LockNow } from '../../../drivers/contract/zgate.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { type LockLinks, openLockCommands } from './lock-links.ts';

const MAC = '00124b0001a2b3c4';
const LOCK = { doorId: 'd', gatewayId: 'g', networkId: 'n' };
const data = { hwId: MAC, pin: null };
const MINUTE = 60_000;

function open(moved: string[] = []) {
  const clock = manualClock();
  const sent: LockNow[] = [];
  let failure: DriverError | undefined;
  const played: Partial<LockLinks> = {
    link() {},
    async actuate(_, command) {
      sent.push(command.data);
      if (failure) throw failure;
      return { outcome: 'confirmed' };
    },
  };
  const links = openLockCommands(played as LockLinks, clock, { locksMoved: () => moved });
  const event: LockEvent = {
    hwId: MAC,
    kind: 'operation',
    what: 'locked',
    source: 'rf',
    userId: null,
    at: clock.now(),
    heardAt: clock.monotonic(),
  };
  return {
    clock,
    links,
    /** Whether its event would confirm it. */
    async lock(kind: 'lock' | 'endStandOpen' = 'lock'): Promise<boolean> {
      await links
        .actuate(LOCK, { kind, data: { ...data, eventConfirms: true } }, 1_000)
        .catch(() => undefined);
      return sent.at(-1)?.eventConfirms === true;
    },
    hear: (more: Partial<LockEvent> = {}) =>
      links.lockingHeard({ ...event, heardAt: clock.monotonic(), ...more }),
    fails(error: DriverError | undefined) {
      failure = error;
    },
    last: () => sent.at(-1),
  };
}

it('lets the event of a lock confirm a command that it can only be of', async () => {
  const { clock, lock, hear, last, links } = open();
  expect(await lock()).toBe(true);
  // It may come still, or again.
  expect(await lock()).toBe(false);
  await clock.advance(5 * MINUTE + 1);
  expect(await lock()).toBe(true);
  hear();
  expect(await lock('endStandOpen')).toBe(true);
  for (const other of [
    { source: 'manual' },
    { what: 'unlocked' },
    { heardAt: null },
    { kind: 'bolt' },
  ] as const)
    hear(other);
  expect(await lock()).toBe(false);
  // One that did not ask for it is sent no such word.
  await links.actuate(LOCK, { kind: 'lock', data }, 1_000);
  expect(last()).toEqual(data);
});

it('has the driver know of standing open, which may have unlocked the lock by radio: its event may come in the next host', async () => {
  const { clock, links, last } = open();
  const standOpen = () => links.actuate(LOCK, { kind: 'standOpen', data }, 1_000);
  await clock.advance(1_000);
  await standOpen();
  expect(last()).toEqual({ ...data, earlierAt: null });
  await clock.advance(MINUTE);
  links.link('zb-1', false);
  await standOpen();
  expect(last()).toEqual({ ...data, earlierAt: 1_000 });
  expect(links.firstOpenedAt(MAC)).toBe(1_000);
});

it('counts what was sent, and neither what was not nor what the lock refused', async () => {
  const { lock, fails } = open();
  for (const code of ['LINK_LOST', 'REFUSED'] as const) {
    fails(new DriverError(code, 'no'));
    expect(await lock()).toBe(true);
  }
  fails(new DriverError('OUTCOME_UNKNOWN', 'no word of it'));
  expect(await lock()).toBe(true);
  expect(await lock()).toBe(false);
});

it('does not know what a run before this one, or a host before this one, has heard', async () => {
  const { clock, lock, hear, links } = open([MAC]);
  expect(await lock()).toBe(false);
  await clock.advance(5 * MINUTE + 1);
  expect(await lock()).toBe(true);
  hear();
  links.link('zb-1', false);
  expect(await lock()).toBe(false);
});
