import { expect, it } from 'vitest';
import { A, openTestbed } from '../../../test/resources/zgates/testbed.ts';
import { firmwareWarning } from './coordinator-firmware.ts';

const QUIET = { channels: [11, 15, 20].map((channel) => ({ channel, energy: channel })) };
const BUSY = {
  channels: [{ channel: 15, energy: 230 }, ...QUIET.channels.filter((one) => one.channel !== 15)],
};

it('the channels are measured when a technician asks, and are in the state then', async () => {
  const bed = await openTestbed();
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ energies: null });
  bed.played.energies = () => BUSY;
  bed.report({ zigbeeChannel: 15 });
  expect((await bed.post(`/${A}/energy-scan`, undefined, 'front-desk-admin')).status).toBe(403);
  expect((await bed.post(`/${A}/energy-scan`)).status).toBe(202);
  const result = await bed.jobs[0]?.ended;
  expect(result).toMatchObject({ channels: [{ channel: 15, energy: 230, isBusy: true }, {}, {}] });
  const { body } = await bed.get(`/${A}/state`);
  expect(body).toMatchObject({
    energies: {
      channels: [{ isBusy: true }, { channel: 11, isBusy: false }, {}],
      warning: expect.stringContaining('channel 15 is busy'),
    },
  });
});

it('a network that was formed reports them by itself', async () => {
  const bed = await openTestbed();
  bed.zgates.report('zb-1', { subject: 'energies', state: QUIET });
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ energies: { warning: null } });
  bed.zgates.report('zb-1', { subject: 'energies', state: { channels: [{ channel: 9, energy: 1 }] } });
  expect((await bed.get(`/${A}/state`)).body).toMatchObject({ energies: { channels: [{}, {}, {}] } });
});

it.each([
  [undefined, null],
  ['20250321', null],
  ['20240710', null],
  ['20230507', /unstable.*20240710/],
  ['20211217', /Touchlink.*20220219/],
  ['7.4.3.0', null],
])('firmware %s: %s', (version, expected) => {
  const warning = firmwareWarning(version);
  if (expected === null) expect(warning).toBeNull();
  else expect(warning).toMatch(expected);
});
