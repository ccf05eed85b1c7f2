/** What readers of live events receive of devices. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import { liveEvent } from '../../services/events/cloud-event.ts';
import { alarmChanged, connectionChanged, credentialShown, inputActivated } from './live-events.ts';

const DEVICE = 'aaaaaaaa-0000-4000-8000-00000000000a';
const RECORDED = { systemId: '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11', at: 0, clockSynchronised: true };
const document = parse(readFileSync(join(import.meta.dirname, '../../../docs/asyncapi.yaml'), 'utf8')) as {
  components: { schemas: Record<string, Parameters<typeof z.fromJSONSchema>[0]> };
};

it.each<[string, LiveEvent]>([
  ['rs485Connection', connectionChanged(DEVICE, false, 5)],
  [
    'rs485Input',
    inputActivated(DEVICE, {
      hwId: 'io-1',
      since: 7,
      input: 'input3',
      activations: 1,
      total: 9,
      at: 1_000,
    }),
  ],
  [
    'rs485Credential',
    credentialShown(
      DEVICE,
      { hwId: 'io-1', since: 7, reader: 0, format: 'wiegand', bits: 'ffc00080', count: 26, at: 1_000 },
      DEVICE,
    ),
  ],
  ['rs485Alarm', alarmChanged(DEVICE, { hwId: 'io-1', alarm: 'supply', raised: false, at: 1_000 })],
  ['rs485Alarm', alarmChanged(DEVICE, { hwId: 'io-1', alarm: 'relay', raised: true, at: 1_000 })],
])('%s is as docs/asyncapi.yaml has it, to the last field', (name, event) => {
  const schema = z.fromJSONSchema(document.components.schemas[name] ?? {});
  const shown = JSON.parse(liveEvent(event, RECORDED)) as { data: object };
  expect(schema.safeParse(shown).error?.message).toBeUndefined();
  expect(schema.safeParse({ ...shown, data: { ...shown.data, hwId: 'io-1' } }).success).toBe(false);
});
