/** A library that sits on a command, by a clock of our own. */
import { expect, it } from 'vitest';
import { LOCK, unlockOf } from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import type { DriverContext } from '../contract/driver.ts';
import { DriverError } from '../contract/driver.ts';
import { openOwedEvents } from '../contract/owed-events.ts';
import type { Gateway } from './commands.ts';
import { commandsOf } from './commands.ts';
import type { ZclReply, ZclRequest } from './radio.ts';

/** As src/resources/doors/unlock.ts has it, and src/platform/field/host/links.ts keeps it. */
const DEADLINE_MS = 10_000;

function open() {
  const clock = manualClock();
  const requests: ZclRequest[] = [];
  const { promise: sending, resolve: settle } = Promise.withResolvers<ZclReply>();
  const lost: string[] = [];
  const exchanged: boolean[] = [];
  const radio = {
    send(request: ZclRequest) {
      requests.push(request);
      request.left?.();
      return sending;
    },
    meta: () => ({}),
    attribute: () => undefined,
  };
  const locks = {
    find: () => ({ ieee: LOCK, endpoint: 1, hasOwnCluster: false }),
    listen: () => () => undefined,
    operatedAt: () => undefined,
    owed: openOwedEvents(),
    exchange: () => (answered: boolean) => exchanged.push(answered),
  };
  const gateway = {
    context: { clock } as unknown as DriverContext,
    network: { radio: () => radio },
    locks,
    options: { unlockBehindRouters: true },
    addresses: { reason: () => undefined },
    firmware: {},
    joining: {},
    configurer: {},
    recovery: { yield: () => undefined },
    states: { yield: () => undefined },
    link: { lost: (reason: string) => lost.push(reason), ended: new AbortController().signal },
  };
  const commands = commandsOf(gateway as unknown as Gateway, { due() {} }, () => undefined);
  const deadline = clock.monotonic() + DEADLINE_MS;
  const over = new AbortController();
  void clock
    .sleep(DEADLINE_MS)
    .then(() => over.abort(new DriverError('OUTCOME_UNKNOWN', 'the deadline passed')));
  const data = unlockOf(LOCK);
  let outcome: unknown;
  commands.execute({ kind: 'unlock', data, deadline }, over.signal).then(
    (value) => (outcome = value),
    (error) => (outcome = error),
  );
  return { clock, requests, settle, lost, exchanged, commands, deadline, outcome: () => outcome };
}

it('knows no outcome at the deadline when the library sits on an unlock, and then has the host replaced', async () => {
  const { clock, requests, lost, commands, deadline, outcome } = open();
  await clock.advance(DEADLINE_MS - 1);
  expect(outcome()).toBeUndefined();
  await clock.advance(1);
  // Not when the library is through with its own waits, which is 7 s later.
  expect(outcome()).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(commands.isHanging()).toBe(false);
  await clock.advance(17_000 - DEADLINE_MS);
  expect([lost, commands.isHanging()]).toEqual([['the coordinator sits on a command'], true]);
  // Sent once, and to be sent no later than a lock can get it in time.
  expect(requests).toHaveLength(1);
  expect(requests[0]?.notAfter).toBeLessThanOrEqual(deadline - 7_680);
});

it('takes an answer that comes after the deadline for a sign of life, and not for another outcome', async () => {
  const { clock, requests, settle, lost, exchanged, commands, outcome } = open();
  await clock.advance(DEADLINE_MS);
  settle({ kind: 'answered', payload: { status: 0 } });
  await clock.advance(17_000);
  expect(outcome()).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect([exchanged, lost, commands.isHanging()]).toEqual([[true], [], false]);
  expect(requests).toHaveLength(1);
});
