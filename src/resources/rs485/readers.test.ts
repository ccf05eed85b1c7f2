/** What is shown at the reader of an OSDP device by the interface, and the door of a card. */
import { describe, expect, it } from 'vitest';
import type { DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { A, DOOR, openTestbed } from '../../../test/resources/rs485/testbed.ts';

async function ready(protocol = 'osdp') {
  const bed = await openTestbed(undefined, { protocol });
  await bed.add({ deviceId: A, hwId: 'io-1', bus: 'bus-1', doorId: DOOR });
  bed.report('io-1', { address: 3 });
  return bed;
}
const LED = { colour: 'green' };

describe('what is shown at a reader', () => {
  it('goes to its device with what is usual, and into the audit', async () => {
    const bed = await ready();
    bed.answer(() => ({ shown: ['text', 'led'], refused: null }));
    const { status, body } = await bed.post(`/${A}/reader`, { text: { text: 'Welcome' }, led: LED });
    expect([status, body]).toEqual([200, { deviceId: A, reader: 0, shown: ['text', 'led'] }]);
    const detail = {
      reader: 0,
      text: { text: 'Welcome', row: 1, column: 1, seconds: 5 },
      led: { led: 0, colour: 'green', milliseconds: 2_000 },
    };
    expect(bed.commands.filter(({ kind }) => kind === 'showOnReader')).toMatchObject([
      { link: 'bus-1', data: { hwId: 'io-1', ...detail } },
    ]);
    expect(bed.audits).toMatchObject([
      {
        action: 'rs485.reader',
        object: `rs485/${A}`,
        outcome: 'done',
        detail: { ...detail, shown: ['text', 'led'] },
      },
    ]);
  });

  it('is 409 with the field where the device cannot', async () => {
    const bed = await ready();
    bed.answer(() => ({ shown: ['text'], refused: { part: 'led', reason: 'it has no LED' } }));
    const { status, body } = await bed.post(`/${A}/reader`, { text: { text: 'Hi' }, led: LED });
    expect([status, body]).toMatchObject([
      409,
      { error: 'READER_REFUSED', details: [{ path: '/led', message: 'it has no LED' }] },
    ]);
    expect(bed.audits).toMatchObject([
      { outcome: 'failed', detail: { refused: { part: 'led' }, shown: ['text'] } },
    ]);
  });

  it.each<[DriverErrorCode, number, string, string]>([
    ['DEVICE_OFFLINE', 503, 'DEVICE_OFFLINE', 'failed'],
    ['BUSY', 503, 'DEVICE_OFFLINE', 'failed'],
    ['NO_REPLY', 409, 'OUTCOME_UNKNOWN', 'unknown'],
    ['OUTCOME_UNKNOWN', 409, 'OUTCOME_UNKNOWN', 'unknown'],
    ['INVALID_COMMAND', 500, 'INTERNAL', 'failed'],
  ])('%s of the driver is %i %s', async (thrown, status, code, outcome) => {
    const bed = await ready();
    bed.answer(thrown);
    expect(await bed.post(`/${A}/reader`, { led: LED })).toMatchObject({ status, body: { error: code } });
    expect(bed.audits).toMatchObject([{ outcome }]);
  });

  it('is for OSDP, for a device that answers, and for something to show', async () => {
    const modbus = await ready('modbus');
    expect(await modbus.post(`/${A}/reader`, { led: LED })).toMatchObject({ status: 400 });
    const bed = await ready();
    expect(await bed.post(`/${A}/reader`, {})).toMatchObject({ status: 400 });
    expect(await bed.post(`/${A}/reader`, { led: LED }, 'pms')).toMatchObject({ status: 403 });
    bed.report('io-1', { address: 3, connected: false });
    expect(await bed.post(`/${A}/reader`, { led: LED })).toMatchObject({ status: 503 });
    expect([...modbus.commands, ...bed.commands].filter(({ kind }) => kind === 'showOnReader')).toEqual([]);
  });
});

it('a card has the door of its device, in the event and in the state', async () => {
  const bed = await ready();
  const data = { hwId: 'io-1', reader: 0, format: 'wiegand', bits: 'ffc00080', count: 26, at: 1_000 };
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ lastCredential: null });
  await bed.rs485.event('bus-1', { id: 'e-1', kind: 'credential', data });
  expect(bed.published.filter(({ type }) => type === 'gatehouse.rs485.credential.v1')).toMatchObject([
    { data: { deviceId: A, doorId: DOOR, bits: 'ffc00080' } },
  ]);
  const at = new Date(1_000).toISOString();
  const { body } = await bed.get(`/${A}/state`);
  expect(body).toMatchObject({
    lastCredential: { doorId: DOOR, reader: 0, format: 'wiegand', count: 26, at },
  });
  expect(JSON.stringify(body)).not.toContain('ffc00080');
});

it('what is read and what becomes active is passed on once it is durable, each once', async () => {
  const bed = await ready();
  const card = {
    hwId: 'io-1',
    reader: 0,
    format: 'wiegand',
    bits: 'ffc00080',
    count: 26,
    at: 1_000,
    since: 7,
  };
  const press = { hwId: 'io-1', input: 'input1', activations: 1, total: 1, at: 1_000, since: 8 };
  for (const event of [
    { id: 'e-1', kind: 'credential', data: card },
    { id: 'e-1', kind: 'credential', data: card },
    { id: 'e-2', kind: 'input', data: press },
    { id: 'e-2', kind: 'input', data: press },
  ])
    expect(await bed.rs485.event('bus-1', event)).toBe(true);
  const { hwId: _, ...read } = card;
  expect(bed.heard).toEqual([
    { ...read, deviceId: A, doorId: DOOR },
    { input: 'input1', at: 1_000, since: 8, deviceId: A },
  ]);
});

it('what could not be stored is not passed on', async () => {
  const bed = await ready();
  const { commit } = bed.database;
  Object.assign(bed.database, { commit: () => Promise.reject(new Error('the disk is full')) });
  const data = { hwId: 'io-1', input: 'input1', activations: 1, total: 1, at: 1_000, since: 8 };
  await expect(bed.rs485.event('bus-1', { id: 'e-1', kind: 'input', data })).rejects.toThrow('full');
  expect(bed.heard).toEqual([]);
  Object.assign(bed.database, { commit });
});
