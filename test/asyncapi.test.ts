import { readFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import type { LockEvent } from '../drivers/contract/zgate.ts';
import { MESSAGES } from '../drivers/encoder/messages.ts';
import {
  configurationEnded,
  doorAlarm,
  doorChanged,
  happenedAt,
  lateOutcomeEvent,
  lockChanged,
  lockStateChanged,
  presenceChanged,
  standingChanged,
} from '../src/resources/doors/live-events.ts';
import type { DoorRow } from '../src/resources/doors/table.ts';
import { joinHasFailed, connectionChanged as zgateConnection } from '../src/resources/zgates/live-events.ts';
import { tokenEnds } from '../src/services/auth/ending.ts';
import { gapEvent, liveEvent, withReplayed } from '../src/services/events/cloud-event.ts';
import { liveEvent as openLiveEvent } from '../src/services/events/live-types.ts';
import { certificateEnds } from '../src/services/pki/own-certificate.ts';
import { INSTANT } from './simulators/encoder/commands.ts';
import { openEncoder } from './simulators/encoder/encoder.ts';
import type * as TransportFile from './simulators/encoder/transport.ts';
import { drawKeys, openTestSite, type TestSite } from './simulators/test-site.ts';
import { isTerminalEvent } from './simulators/upstream.ts';

interface Json {
  [key: string]: Json | undefined;
}

const document = parse(readFileSync(join(import.meta.dirname, '../docs/asyncapi.yaml'), 'utf8')) as Json;

/** Everything said on the wire between the encoder and the gateway. */
const said = vi.hoisted(() => [] as { topic: string; payload: string }[]);
vi.mock('./simulators/encoder/transport.ts', async (original) => {
  const file = await original<typeof TransportFile>();
  return {
    ...file,
    async openTransport(options: TransportFile.TransportOptions) {
      said.push(options.will);
      const received = (topic: string, payload: Buffer) => {
        said.push({ topic, payload: payload.toString() });
        options.received(topic, payload);
      };
      const transport = await file.openTransport({ ...options, received });
      const publish = (topic: string, payload: string) => {
        said.push({ topic, payload });
        return transport.publish(topic, payload);
      };
      return { ...transport, publish };
    },
  };
});

/** References followed, and what is only for people left out. */
function plain(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (typeof node !== 'object' || node === null) return node;
  if ('$ref' in node) return plain(at(String(node.$ref)));
  return Object.fromEntries(
    Object.entries(node)
      // A property may have that name too.
      .filter(([key, value]) => key !== 'description' || typeof value === 'object')
      .map(([key, value]) => [key, plain(value)]),
  );
}
function at(reference: string): Json {
  const found = reference
    .split('/')
    .slice(1)
    .reduce<Json | undefined>((node, step) => node?.[step], document);
  if (found === undefined) throw new Error(`${reference} leads nowhere`);
  return found;
}

/** A zod schema in the words of the document: what `format` says already is not said by a pattern too. */
function fromZod(schema: z.ZodType): unknown {
  const simplified = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(simplified);
    if (typeof node !== 'object' || node === null) return node;
    const dropped = 'format' in node ? ['$schema', 'pattern'] : ['$schema'];
    return Object.fromEntries(
      Object.entries(node)
        .filter(([key]) => !dropped.includes(key))
        .map(([key, value]) => [key, simplified(value)]),
    );
  };
  return simplified(z.toJSONSchema(schema, { io: 'input' }));
}

/** The schema of the messages of a topic, as a validator. */
function validatorOf(topic: string): z.ZodType {
  const channels = Object.values(document.channels ?? {}) as unknown as {
    address: string;
    messages: object;
  }[];
  const channel = channels.find(({ address }) =>
    new RegExp(`^${address.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(topic),
  );
  if (!channel) throw new Error(`${topic} is no topic of the document`);
  const messages = Object.values(channel.messages).map(plain) as { payload: unknown }[];
  const schema = { anyOf: messages.map(({ payload }) => payload) };
  return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
}

it('leads somewhere with every reference', () => {
  const text = readFileSync(join(import.meta.dirname, '../docs/asyncapi.yaml'), 'utf8');
  const references = [...text.matchAll(/\$ref: '#([^']+)'/g)].map(([, path]) => path ?? '');
  expect(references.length).toBeGreaterThan(50);
  for (const reference of references) expect(at(reference)).toBeDefined();
});

describe('the messages of an encoder', () => {
  it.each(Object.entries(MESSAGES))(
    '%s has the fields the gateway knows, and their bounds',
    (name, schema) => {
      expect(plain(at(`#/components/schemas/${name}`))).toEqual(fromZod(schema));
    },
  );
});

describe('what is really said', () => {
  let site: TestSite;
  beforeAll(async () => {
    site = await openTestSite();
    const bundle = await site.register('desk-1');
    const stateDirectory = await mkdtemp(join(site.directory, 'encoder-'));
    await using stack = new AsyncDisposableStack();
    const connected = Promise.withResolvers<void>();
    const encoder = stack.use(
      openEncoder({
        bundle,
        stateDirectory,
        timings: INSTANT,
        endlessCards: true,
        report: ({ event }) => event === 'connected' && connected.resolve(),
        crash: () => {},
      }),
    );
    await connected.promise;
    const upgrade = {
      id: 'u',
      apps: [],
      platform: { name: 'p', version: '1' },
      versions: [{ name: 'v', version: '2' }],
    };
    encoder.command({ do: 'upgrade', job: upgrade });
    encoder.command({ do: 'upgrade', job: null });
    encoder.command({ do: 'alarm', raised: true });
    encoder.command({ do: 'alarm', raised: false });
    const keys = drawKeys(['6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d', '00000000-0000-4000-8000-000000000002']);
    await vi.waitFor(async () => {
      expect((await site.requestWrite('desk-1', 'r-1', keys)).status).toBe(202);
    });
    await site.upstream.waitFor((event) => isTerminalEvent(event) && event.subject === keys[1]?.keyId);
    encoder.command({ do: 'endless', on: false });
    await site.requestWrite('desk-1', 'r-2', drawKeys(['00000000-0000-4000-8000-000000000003']));
    await site.upstream.waitFor(({ data }) => data.requestId === 'r-2' && data.status === 'cardRequested');
    const path = '/encoder/desk-1/write-request/r-2';
    await site.daemon.call('DELETE', path, site.tokens['front-desk']);
    await site.upstream.waitFor((event) => isTerminalEvent(event) && event.data.requestId === 'r-2');
  });
  afterAll(() => site[Symbol.asyncDispose]());

  it('by encoder and gateway is as the document has it, on every topic', () => {
    for (const { topic, payload } of said) {
      const result = validatorOf(topic).safeParse(JSON.parse(payload));
      expect(result.error?.message, `${topic} ${payload}`).toBeUndefined();
    }
    const channels = new Set(said.map(({ topic }) => topic.split('/').slice(2).join('/')));
    expect([...channels].toSorted()).toEqual([
      'down/ack',
      'down/cancel',
      'down/hello',
      'down/write',
      'up/job',
      'up/progress',
      'up/status',
    ]);
  });

  it('to the notification service is as the document has it, to the last field', () => {
    const { deliveries } = site.upstream;
    expect(new Set(deliveries.map(({ event }) => event.data.status))).toContain('cancelled');
    expect(deliveries.length).toBeGreaterThan(8);
    for (const { topic, event } of deliveries) {
      expect(validatorOf(topic).safeParse(event).error?.message, JSON.stringify(event)).toBeUndefined();
      const more = { ...event, data: { ...event.data, blocks: ['00'] } };
      expect(validatorOf(topic).safeParse(more).success).toBe(false);
    }
  });

  it('of gaps is as the document has it', () => {
    const recorded = { systemId: '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11', at: 0, clockSynchronised: true };
    const gap = { encoderId: 'desk-1', first: 3, last: 9, reason: 'AGE' } as const;
    const { topic, body } = gapEvent(gap, 'upstream', recorded);
    const event = JSON.parse(withReplayed(body, false)) as unknown;
    expect(validatorOf(topic).safeParse(event).error?.message).toBeUndefined();
  });
});

it('has every type of live event with the fields that the OpenAPI document has, and no other', () => {
  const { oneOf } = fromZod(openLiveEvent) as { oneOf: { properties: { type: Json; data: Json } }[] };
  const inOpenApi = oneOf.map(({ properties: { type, data } }) => [String(type.const), shape(data)]);
  const channel = plain(at('#/channels/live')) as { messages: Record<string, { payload: Json }> };
  const gap = plain(at('#/components/schemas/gap')) as Json;
  const inAsyncApi = [...Object.values(channel.messages).map(({ payload }) => payload), gap].flatMap(
    (payload) => {
      const { type, data } = payload.properties as unknown as {
        type: { const?: string; pattern?: string };
        data: Json;
      };
      if (type.const !== undefined) return [[type.const, shape(data)]];
      // Write progress: one message for all of its types.
      const [, words = ''] = /\(([\w|]+)\)/.exec(type.pattern ?? '') ?? [];
      return words.split('|').map((word) => {
        const narrowed = { ...data, properties: { ...data.properties, status: { enum: [word] } } };
        return [`gatehouse.encoder.write.${word}.v1`, shape(narrowed as unknown as Json)];
      });
    },
  );
  expect(Object.fromEntries(inOpenApi)).toEqual(Object.fromEntries(inAsyncApi));
});

/** Names, which of them are required, and the words they can be: what both documents say of the data of an event. */
function shape(data: Json): unknown {
  const fields = Object.entries(data.properties as unknown as Record<string, Json>);
  return Object.fromEntries(
    fields.map(([name, field]) => {
      const required = (data.required as unknown as string[]).includes(name);
      const words = field.enum ?? (field.const === undefined ? undefined : [field.const]);
      return [name, { required, words }];
    }),
  );
}

describe('what is published to live readers alone', () => {
  const ID = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
  const HAPPENED: LockEvent = {
    hwId: '00124b0001020304',
    kind: 'operation',
    what: 'unlocked',
    source: 'keypad',
    userId: 7,
    at: 0,
    heardAt: 0,
  };
  const DOOR = { id: ID, name: 'Room 214', accessPointId: 214, since: 0 };
  const row = { id: ID, config_version: 3, config_correlation_id: 'c-1' } as DoorRow;

  it.each([
    presenceChanged({ ...DOOR, status: 'connected', reason: null }),
    presenceChanged({
      ...DOOR,
      name: null,
      status: 'unknown',
      reason: { code: 'GATEWAY_LOST', message: 'Zigbee gateway Lobby is not connected.' },
    }),
    doorChanged(ID, 'created', ['accessPointId', 'name'], { correlationId: 'c-1' }),
    doorChanged(ID, 'edited', ['pmsId'], { correlationId: 'c-1' }),
    configurationEnded(row, 'applied'),
    configurationEnded(row, 'refused', 'not supported'),
    lockChanged(ID, 'joined', { mac: '00124b0001020304', gatewayId: ID }),
    lockChanged(ID, 'replaced', { mac: '00124b0001020304', gatewayId: null }),
    standingChanged(ID, 'begun', null),
    standingChanged(ID, 'lost', 'the device does not answer'),
    standingChanged(ID, 'ending', 'its time is over'),
    standingChanged(ID, 'ended', 'its time is over'),
    standingChanged(ID, 'expired', 'nothing was sent'),
    doorAlarm(ID, 'notLocked', true, 'the bolt did not move'),
    doorAlarm(ID, 'batteryLow', false, 'the lock reports 80 %'),
    happenedAt(ID, { ...HAPPENED, kind: 'bolt' }),
    lateOutcomeEvent(ID, { delayMs: 9_000, isLate: false, at: 0 }, { correlationId: ID }),
    lateOutcomeEvent(ID, { delayMs: null, isLate: null, at: 0 }, { correlationId: ID }),
    lockStateChanged(ID, { lockState: { value: 'locked', at: 0 } }),
    lockStateChanged(ID, { doorState: { value: 'forcedOpen', at: 0 } }),
    happenedAt(ID, HAPPENED),
    happenedAt(ID, { ...HAPPENED, kind: 'door', what: 'doorOpen', source: null, userId: null }),
    zgateConnection(ID, true, 0),
    certificateEnds({ notAfter: new Date(0).toISOString(), daysLeft: 6 }),
    tokenEnds({ id: '0f3a9c51d2e7', label: 'PMS', expires_at: 0 }, 13),
    joinHasFailed(ID, {
      mac: '00124b0001020304',
      at: new Date(0).toISOString(),
      reason: 'silent',
      message: 'reset it',
    }),
  ])('is as the document has it, to the last field: $type $data.outcome', (event) => {
    const recorded = { systemId: ID, at: 0, clockSynchronised: true };
    const message = JSON.parse(liveEvent(event, recorded)) as { data: object };
    expect(validatorOf('/events').safeParse(message).error?.message, JSON.stringify(message)).toBeUndefined();
    expect(validatorOf('/events').safeParse({ ...message, data: { ...message.data, more: 1 } }).success).toBe(
      false,
    );
    expect(validatorOf('/events').safeParse({ ...message, data: {} }).success).toBe(false);
  });
});
