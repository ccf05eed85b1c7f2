/** Events of buses, which a driver sends again until it knows them durable: each is taken in once. */

import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import type { DriverEvent } from '../../../drivers/contract/driver.ts';
import {
  alarmEvent,
  type CredentialEvent,
  credentialEvent,
  inputEvent,
} from '../../../drivers/contract/rs485.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Discovery } from './discovery.ts';
import { alarmChanged, credentialShown, inputActivated } from './live-events.ts';
import type { Rs485Row } from './table.ts';

/** Ids remembered, over all buses: far more than 64 links can have on their way (src/platform/field/ipc.ts, EVENT_CREDITS). */
const REMEMBERED_MAX = 10_000;

export type LastCredential = Pick<CredentialEvent, 'reader' | 'format' | 'count' | 'at'> & {
  doorId: string | null;
};

export interface FieldEvents {
  /** Resolves when the event is durable: true, or false when it is none of ours. */
  take(bus: string, event: DriverEvent): Promise<boolean>;
  /** Since the gateway started; nothing that a card could be copied from. */
  lastCredential(deviceId: string): LastCredential | undefined;
}

export function openFieldEvents(context: Rs485Context, discovery: Discovery, buses: Buses): FieldEvents {
  const { database, table, audit, events, log } = context;
  const credentials = new Map<string, LastCredential>();

  function remember(deviceId: string, doorId: string | null, data: unknown): void {
    const { data: shown } = credentialEvent.safeParse(data);
    if (!shown) return;
    const { reader, format, count, at } = shown;
    credentials.set(deviceId, { reader, format, count, at, doorId });
  }

  function follow({ device_id: deviceId, door_id: doorId }: Rs485Row, kind: string, data: unknown): void {
    if (kind === 'credential') {
      const { hwId: _, ...read } = credentialEvent.parse(data);
      context.credentialRead({ ...read, deviceId, doorId });
    }
    if (kind === 'input') {
      const { input, since, at } = inputEvent.parse(data);
      context.inputActivated({ deviceId, input, since, at });
    }
  }

  async function take(bus: string, { id, kind, data }: DriverEvent): Promise<boolean> {
    const read = KINDS[kind];
    if (!buses.has(bus) || !read) return false;
    const taken = read(data);
    if (!taken) {
      log.warn({ link: bus, kind }, 'a bus sent an event that is none; it was dropped');
      return true;
    }
    const news = await database.commit(() => {
      if (table.insertEvent.run(bus, id).changes === 0) return undefined;
      table.pruneEvents.run(REMEMBERED_MAX);
      const row = discovery.row({ bus, hwId: taken.hwId, address: null });
      if (!row) return undefined;
      events.publish(taken.of(row.device_id, row.door_id));
      if (kind === 'credential') remember(row.device_id, row.door_id, data);
      const fault = relayFaultOf(data);
      if (kind === 'alarm' && fault)
        audit.record({
          principal: SYSTEM_PRINCIPAL,
          correlationId: randomUUID(),
          action: 'rs485.relayFault',
          object: `rs485/${row.device_id}`,
          ...fault,
        });
      return row;
    });
    events.wake();
    if (news) follow(news, kind, data);
    return true;
  }
  return { take, lastCredential: (deviceId) => credentials.get(deviceId) };
}

/** undefined: another alarm. */
function relayFaultOf(data: unknown) {
  const { alarm, raised } = alarmEvent.safeParse(data).data ?? {};
  if (alarm !== 'relay') return undefined;
  return raised
    ? {
        outcome: 'failed',
        detail: { reason: 'a relay was still closed after its pulse: it is switched off' },
      }
    : { outcome: 'done', detail: { reason: 'the relay was read open' } };
}

const KINDS: Readonly<Record<string, (data: unknown) => Taken | undefined>> = {
  input: reader(inputEvent, inputActivated),
  alarm: reader(alarmEvent, alarmChanged),
  credential: reader(credentialEvent, credentialShown),
};

interface Taken {
  hwId: string;
  of(deviceId: string, doorId: string | null): LiveEvent;
}

/** undefined: it is none of that kind. */
function reader<Event extends { hwId: string }>(
  schema: z.ZodType<Event>,
  shown: (deviceId: string, event: Event, doorId: string | null) => LiveEvent,
) {
  return (data: unknown): Taken | undefined => {
    const { data: taken } = schema.safeParse(data);
    return taken && { hwId: taken.hwId, of: (deviceId, doorId) => shown(deviceId, taken, doorId) };
  };
}
