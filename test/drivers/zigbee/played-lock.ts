/** The commands that move a bolt, to a lock that answers as a test says. */

import { DriverError } from '../../../drivers/contract/driver.ts';
import { openOwedEvents } from '../../../drivers/contract/owed-events.ts';
import { openBoltCommands } from '../../../drivers/zigbee/bolt-commands.ts';
import type { Facts } from '../../../drivers/zigbee/messages.ts';
import type { ZclReply, ZclRequest } from '../../../drivers/zigbee/radio.ts';
import { manualClock } from '../../manual-clock.ts';
import { LOCK } from './gateway.ts';

export const RELOCK_TIME = 0x23;
export const OPERATING_MODE = 0x25;
export const SILENT: ZclReply = { kind: 'unanswered', reason: 'no answer in time' };
export const answered = (payload: unknown): ZclReply => ({ kind: 'answered', payload });
/** The question for its bolt, with which a command ends. */
export const isBoltRead = ({ command: name, payload }: ZclRequest) =>
  name === 'read' && JSON.stringify(payload) === '[{"attrId":0}]';
export const command = { hwId: LOCK, pin: null };

export interface Played {
  /** Attributes that the lock reported when it was configured. */
  reported?: Record<string, number>;
  meta?: Record<string, unknown>;
  attributes?: Record<number, number>;
  /** So long ago this process started. */
  startedMs?: number;
  /** Before each answer. */
  before?(): Promise<unknown>;
  /** Instead of what a good lock answers. */
  reply?(request: ZclRequest): ZclReply | undefined;
}

export async function openPlayed(played: Played) {
  // By default what a process before this one may have sent cannot arrive any more.
  const {
    reported = {},
    meta: kept = {},
    attributes: values = {},
    startedMs = 35_000,
    before,
    reply,
  } = played;
  const clock = manualClock();
  const meta = { ...kept };
  const attributes: Record<number, number> = { 0: 1, ...values };
  const sent: string[] = [];
  const requests: ZclRequest[] = [];
  const listeners = new Set<(facts: Facts) => void>();
  const readAgain: string[] = [];
  const owed = openOwedEvents<object>();
  let operatedAt: number | undefined;
  function say(facts: Facts): void {
    if (facts.unlockedByRadio) {
      operatedAt = clock.monotonic();
      owed.take(LOCK, operatedAt);
    }
    for (const hear of listeners) hear(facts);
  }
  function good({ command: name, payload }: ZclRequest): ZclReply {
    const records = Array.isArray(payload) ? (payload as { attrId: number; attrData: number }[]) : [];
    if (name === 'read')
      return answered(records.map(({ attrId }) => ({ attrId, status: 0, attrData: attributes[attrId] })));
    for (const { attrId, attrData } of records) attributes[attrId] = attrData;
    if (name === 'write') return answered([{ status: 0 }]);
    attributes[0] = name === 'lockDoor' ? 1 : 2;
    const isUnlock = name !== 'lockDoor';
    queueMicrotask(() => say({ lockState: attributes[0] ?? 0, ...(isUnlock && { unlockedByRadio: true }) }));
    return answered({ status: 0 });
  }
  const radio = {
    async send(request: ZclRequest): Promise<ZclReply> {
      sent.push(request.command);
      requests.push(request);
      request.left?.();
      await before?.();
      return reply?.(request) ?? good(request);
    },
    attribute: (_ieee: string, _endpoint: number, _cluster: string, name: string) => reported[name],
    meta: () => meta,
    remember: (_: string, more: Record<string, unknown>) => void Object.assign(meta, more),
    rememberFirst: (_: string, more: Record<string, unknown>) => void Object.assign(meta, more),
  };
  const commands = openBoltCommands({
    radio,
    clock,
    locks: {
      find: (ieee) => ({ ieee, endpoint: 1, hasOwnCluster: false }),
      operatedAt: () => operatedAt,
      owed,
      listen(_, hear) {
        listeners.add(hear);
        return () => void listeners.delete(hear);
      },
    },
    addresses: { reason: () => undefined },
    readAgain: (ieee) => void readAgain.push(ieee),
    ended: new AbortController().signal,
  });
  await clock.advance(startedMs);
  type Data = Parameters<typeof commands.lock>[0];
  /** `stop`: at its deadline. */
  const begin = (kind: keyof typeof commands, data: Data = command, timeoutMs = 30_000) => {
    const over = new AbortController();
    const end = commands[kind](data, clock.monotonic() + timeoutMs, over.signal);
    return { end, stop: () => over.abort(new DriverError('OUTCOME_UNKNOWN', 'no time left')) };
  };
  const run = (...given: Parameters<typeof begin>) => begin(...given).end;
  return { begin, run, clock, say, sent, requests, meta, attributes, readAgain };
}
