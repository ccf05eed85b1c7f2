import { beforeEach, describe, expect, it } from 'vitest';
import { clientOf } from '../../../test/client.ts';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { lanApp } from '../../../test/things-app.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { silentLog } from '../../platform/log.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import type { CredentialRead } from '../rs485/context.ts';
import { type Access, openAccess } from './access.ts';
import type { Question } from './decision-service.ts';
import { accessOperations } from './operations.ts';

const DOOR = 'dddddddd-0000-4000-8000-00000000000d';
const OTHER = 'dddddddd-0000-4000-8000-00000000000e';
const READER = 'aaaaaaaa-0000-4000-8000-00000000000a';
const CARD = 'cccccccc-0000-4000-8000-00000000000c';
const NUMBER = { bits: 'ffc00080', count: 26 };

interface Played {
  access: Access;
  clock: ManualClock;
  audits: AuditEntry[];
  published: LiveEvent[];
  unlocks: { doorId: string; arrivedAt: number | undefined }[];
  unlock: () => Promise<unknown>;
  isSynchronised: boolean;
  questions: Question[];
  /** undefined: there is no service. */
  answer: (question: Question) => Promise<{ open: boolean; reason?: string }>;
  rules(body: object, door?: string): Promise<{ status: number; body: Record<string, unknown> }>;
  card(body?: object, id?: string): Promise<{ status: number; body: Record<string, unknown> }>;
  get(path: string): Promise<{ status: number; body: Record<string, unknown> }>;
  remove(path: string): Promise<{ status: number; body: Record<string, unknown> }>;
  read(more?: Partial<CredentialRead>): Promise<void>;
  press(more?: object): Promise<void>;
}

let played: Played;
beforeEach(async () => {
  const database = await temporaryDatabase();
  const clock = manualClock();
  const insert = `INSERT INTO door (id, access_point_id, options, config_by, config_correlation_id, created_at, created_by, updated_at, updated_by)
    VALUES (?, ?, '{}', 'x', 'x', 0, 'x', 0, 'x')`;
  await database.commit(() => {
    for (const [index, id] of [DOOR, OTHER].entries())
      database.prepare<[string, number]>(insert).run(id, index + 1);
  });
  const access = openAccess({
    database,
    clock,
    log: silentLog,
    time: { now: clock.now, synchronised: () => played.isSynchronised },
    audit: { record: (entry) => void played.audits.push(entry) },
    events: { publish: (event) => void played.published.push(event), wake() {} },
    vault: { digest: (purpose, content) => `digest of ${purpose} ${content}` },
    catalogue: {
      // The clock of the test begins on a Thursday.
      schedule: (id) =>
        ({
          always: { id, version: 1, intervals: [{ days: ['thu' as const], start: 0, end: 0 }] },
          never: { id, version: 1, intervals: [] },
        })[id],
    },
    doors: {
      exists: (id) => id === DOOR || id === OTHER,
      unlock: async (doorId, { arrivedAt }) => {
        played.unlocks.push({ doorId, arrivedAt });
        await played.unlock();
        return { doorId, outcome: 'confirmed', via: 'rs485', reason: null };
      },
    },
    rs485: {
      usesPin: (id) => (id === READER ? (pin) => pin !== 'input3' : undefined),
    },
    service: {
      ask(question) {
        played.questions.push(question);
        return played.answer(question);
      },
    },
  });
  const desk = clientOf(lanApp({ operations: accessOperations(access, 'access') }), '/access');
  const as = 'front-desk-admin';
  const place = { deviceId: READER };
  const now = () => ({ since: clock.monotonic(), at: clock.now() });
  played = {
    access,
    clock,
    audits: [],
    published: [],
    unlocks: [],
    unlock: async () => {},
    isSynchronised: true,
    questions: [],
    answer: async () => ({ open: false }),
    rules: (body, door = DOOR) => desk.put(`doors/${door}/access-rules`, body, as),
    card: (body = { card: NUMBER, doors: [DOOR] }, id = CARD) => desk.put(`cards/${id}`, body, as),
    get: (path) => desk.get(path, as),
    remove: (path) => desk.delete(path, as),
    read: (more = {}) =>
      access.credentialRead({
        ...place,
        doorId: DOOR,
        reader: 0,
        format: 'wiegand',
        ...NUMBER,
        ...now(),
        ...more,
      }),
    press: (more = {}) => access.inputActivated({ ...place, input: 'input1', ...now(), ...more }),
  };
});

const decisions = () =>
  played.audits
    .filter(({ action }) => action === 'door.access')
    .map(({ outcome, detail }) => [outcome, detail?.reason ?? null]);

describe('a card', () => {
  it('opens nothing until the rules of the door say so', async () => {
    await played.card();
    await played.read();
    expect([played.unlocks, decisions()]).toEqual([[], []]);
    await played.rules({ allowList: true });
    await played.read();
    expect(played.unlocks).toHaveLength(1);
    expect(decisions()).toEqual([['accepted', null]]);
    expect(played.published).toMatchObject([
      { type: 'gatehouse.door.access.v1', data: { isAllowed: true, cardId: CARD, outcome: 'confirmed' } },
    ]);
  });

  it('opens as old as it is: the deadline of the unlock counts from when the reader had nothing to say', async () => {
    await played.card();
    await played.rules({ allowList: true });
    await played.clock.advance(10_000);
    await played.read({ since: 9_000 });
    expect(played.unlocks).toEqual([{ doorId: DOOR, arrivedAt: 9_000 }]);
  });

  it.each([
    ['waited 30 s', 0],
    ['may be of any age', null],
    ['comes from before the boot', 40_000],
  ])('that %s opens nothing', async (_, since) => {
    await played.card();
    await played.rules({ allowList: true });
    await played.clock.advance(30_000);
    await played.read({ since });
    expect(played.unlocks).toEqual([]);
    expect(decisions()).toEqual([['refused', 'TOO_LATE']]);
  });

  it('that is held before the reader opens once', async () => {
    await played.card();
    await played.rules({ allowList: true });
    for (let times = 0; times < 10; times += 1) {
      await played.read();
      await played.clock.advance(1_000);
    }
    expect(played.unlocks).toHaveLength(1);
    await played.clock.advance(3_000);
    await played.read();
    expect(played.unlocks).toHaveLength(2);
  });

  it('that is read again within 3 s opens once, also when the second read is handled later', async () => {
    await played.card();
    await played.rules({ allowList: true });
    await played.read();
    await played.clock.advance(2_600);
    const since = played.clock.monotonic();
    await played.clock.advance(800);
    await played.read({ since });
    expect(played.unlocks).toHaveLength(1);
  });

  it('is known whatever the reader fills its last byte with', async () => {
    await played.card();
    await played.rules({ allowList: true });
    await played.read({ bits: 'ffc000bf' });
    expect(played.unlocks).toHaveLength(1);
    await played.read({ bits: 'ffc00040' });
    expect(decisions().at(-1)).toEqual(['refused', 'CARD_UNKNOWN']);
  });

  it.each([
    ['at another door', { doors: [OTHER] }, 'OTHER_DOOR'],
    ['that is disabled', { doors: [DOOR], status: 'disabled' }, 'CARD_DISABLED'],
    ['outside its schedule', { doors: [DOOR], scheduleId: 'never' }, 'OUTSIDE_TIMES'],
    ['with a schedule that the site does not know', { doors: [DOOR], scheduleId: 'x' }, 'SCHEDULE_UNKNOWN'],
    ['that is over', { doors: [DOOR], validUntil: '2025-12-31T00:00:00Z' }, 'OUTSIDE_TIMES'],
    ['of later', { doors: [DOOR], validFrom: '2027-12-31T00:00:00+01:00' }, 'OUTSIDE_TIMES'],
  ])('%s is refused with its reason', async (_, body, reason) => {
    await played.card({ card: NUMBER, ...body });
    await played.rules({ allowList: true });
    await played.read();
    expect(played.unlocks).toEqual([]);
    expect(decisions()).toEqual([['refused', reason]]);
    expect(played.published).toMatchObject([{ data: { isAllowed: false, outcome: null, cardId: CARD } }]);
  });

  it('with times opens nothing while the clock cannot be believed; one without them does', async () => {
    played.isSynchronised = false;
    await played.card({ card: NUMBER, doors: [DOOR], scheduleId: 'always' });
    await played.rules({ allowList: true });
    await played.read();
    expect(decisions()).toEqual([['refused', 'CLOCK_NOT_TRUSTED']]);
    await played.card({ scheduleId: null });
    await played.clock.advance(3_000);
    await played.read();
    expect(played.unlocks).toHaveLength(1);
    played.isSynchronised = true;
    await played.card({ scheduleId: 'always' });
    await played.clock.advance(3_000);
    await played.read();
    expect(played.unlocks).toHaveLength(2);
  });

  it('has no number in the list, the audit and the events', async () => {
    expect((await played.card({ card: NUMBER, name: 'Night porter', doors: [DOOR] })).status).toBe(200);
    await played.rules({ allowList: true });
    await played.read();
    const list = await played.get('/cards');
    expect(list.body).toMatchObject({ items: [{ cardId: CARD, name: 'Night porter', doors: [DOOR] }] });
    expect(JSON.stringify([list, played.audits, played.published])).not.toMatch(/ffc0008|digest/);
    expect((await played.card({ card: NUMBER }, OTHER)).body.error).toBe('ALREADY_EXISTS');
    expect((await played.card({ doors: [] }, OTHER)).body.error).toBe('VALIDATION_FAILED');
    expect((await played.remove(`/cards/${CARD}`)).status).toBe(200);
    await played.clock.advance(3_000);
    await played.read();
    expect(decisions().at(-1)).toEqual(['refused', 'CARD_UNKNOWN']);
  });

  it('that tries many numbers is not heard for a minute', async () => {
    await played.rules({ allowList: true });
    await played.card();
    for (let times = 0; times < 30; times += 1) await played.read({ bits: `0000${10 + times}00`, count: 32 });
    expect(decisions()).toHaveLength(21);
    await played.read();
    expect(played.unlocks).toEqual([]);
    await played.clock.advance(60_000);
    await played.read();
    expect(played.unlocks).toHaveLength(1);
  });

  it('is audited with the reason for which the door did not open', async () => {
    await played.card();
    await played.rules({ allowList: true });
    played.unlock = () => Promise.reject(new GatehouseError('DEVICE_OFFLINE', 'the bus is down'));
    await played.read();
    expect(decisions()).toEqual([
      ['accepted', null],
      ['failed', 'DEVICE_OFFLINE'],
    ]);
    expect(played.published.map((event) => event.data.reason)).toEqual(['DEVICE_OFFLINE']);
  });

  it('is of the door that names its reader, and not of that of the device', async () => {
    await played.card({ card: NUMBER, doors: [OTHER] });
    await played.rules({ allowList: true, readers: [{ deviceId: READER, reader: 0 }] }, OTHER);
    await played.read();
    expect(played.unlocks).toMatchObject([{ doorId: OTHER }]);
    const second = await played.rules({ readers: [{ deviceId: READER, reader: 0 }] });
    expect([second.status, second.body.error]).toEqual([409, 'IN_USE']);
  });

  it.each([
    [
      'an input that is not in use',
      { requestToExit: [{ deviceId: READER, input: 'input3' }] },
      '/requestToExit/0/input',
    ],
    [
      'an input of no device',
      { requestToExit: [{ deviceId: OTHER, input: 'input1' }] },
      '/requestToExit/0/deviceId',
    ],
    ['a reader of no device', { readers: [{ deviceId: OTHER, reader: 0 }] }, '/readers/0/deviceId'],
  ])('is not waited for at %s', async (_, body, path) => {
    const answer = await played.rules(body);
    expect([answer.status, answer.body.error]).toEqual([400, 'VALIDATION_FAILED']);
    expect(answer.body.details).toMatchObject([{ path, code: 'NOT_POSSIBLE' }]);
  });

  it('of keys opens nothing', async () => {
    await played.rules({ allowList: true, decisionService: true });
    await played.read({ format: 'keypad', bits: null, count: 4 });
    expect([played.unlocks, played.questions, decisions()]).toEqual([[], [], []]);
  });
});

describe('the decision service', () => {
  it('decides before the allow-list, which is not asked', async () => {
    await played.card();
    await played.rules({ allowList: true, decisionService: true });
    await played.read();
    expect(played.unlocks).toEqual([]);
    expect(decisions()).toEqual([['refused', 'SERVICE_REFUSED']]);
    expect(played.questions).toMatchObject([{ doorId: DOOR, deviceId: READER, ...NUMBER }]);
    played.answer = async () => ({ open: true });
    await played.read({ bits: '12345678', count: 32 });
    expect(played.unlocks).toHaveLength(1);
  });

  it('leaves it to the allow-list while it is away, and is not waited for again at once', async () => {
    await played.card();
    await played.rules({ allowList: true, decisionService: true });
    played.answer = () => Promise.reject(new Error('no answer within 1500 ms'));
    await played.read();
    expect(played.unlocks).toHaveLength(1);
    await played.clock.advance(3_000);
    await played.read();
    expect([played.unlocks.length, played.questions.length]).toEqual([2, 1]);
    await played.clock.advance(10_000);
    await played.read();
    expect(played.questions).toHaveLength(2);
  });

  it('that is away opens nothing where there is no allow-list', async () => {
    await played.card();
    await played.rules({ decisionService: true });
    played.answer = () => Promise.reject(new Error('gone'));
    await played.read();
    expect(decisions()).toEqual([['refused', 'SERVICE_AWAY']]);
  });

  it('opens nothing by an answer that comes too late, or for a door that was taken from it', async () => {
    await played.rules({ decisionService: true });
    played.answer = async () => {
      await played.clock.advance(6_000);
      return { open: true };
    };
    await played.read();
    played.answer = async () => {
      await played.rules({ decisionService: false });
      return { open: true };
    };
    await played.read({ bits: '12345678', count: 32 });
    expect(played.unlocks).toEqual([]);
    expect(decisions()).toEqual([
      ['refused', 'TOO_LATE'],
      ['refused', 'RULES_CHANGED'],
    ]);
  });
});

describe('a request to exit', () => {
  const REX = { requestToExit: [{ deviceId: READER, input: 'input1' }] };

  it('opens the door of its input, and no input does before it is bound', async () => {
    await played.press();
    await played.rules(REX);
    await played.press({ input: 'input0' });
    await played.press();
    expect(played.unlocks).toEqual([{ doorId: DOOR, arrivedAt: 0 }]);
    expect(played.published).toMatchObject([
      { data: { by: 'requestToExit', input: 'input1', decidedBy: 'rule' } },
    ]);
    await played.rules({ requestToExit: [] });
    await played.press();
    expect(played.unlocks).toHaveLength(1);
  });

  it('that waited, or may have, opens nothing', async () => {
    await played.rules(REX);
    await played.clock.advance(30_000);
    await played.press({ since: 0 });
    await played.press({ since: null });
    expect(played.unlocks).toEqual([]);
    expect(decisions()).toEqual([
      ['refused', 'TOO_LATE'],
      ['refused', 'TOO_LATE'],
    ]);
  });

  it('whose contact chatters is not heard for a minute', async () => {
    await played.rules(REX);
    for (let times = 0; times < 100; times += 1) await played.press();
    expect(played.unlocks).toHaveLength(60);
    expect(decisions().at(-1)).toEqual(['refused', 'TOO_MANY']);
    await played.clock.advance(60_000);
    await played.press();
    expect(played.unlocks).toHaveLength(61);
  });
});
