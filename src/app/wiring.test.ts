import { expect, it } from 'vitest';
import { type ConfigInput, configSchema } from '../platform/config/config.ts';
import type { LinkSpec } from '../platform/field/field.ts';
import { linkSpecs, rewire, type Wiring } from './wiring.ts';

const NETWORK = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
const GATEWAY = { deviceId: '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40', link: 'zb', networkId: NETWORK };
const wiringOf = (input: object): Wiring => configSchema.parse(input as ConfigInput);
const loopback = (id: string, options = {}) => ({ id, protocol: 'loopback', options });

/** Parts that record their calls; links in `busy` are executing a command. */
function parts(before: Wiring, busy: string[] = []) {
  const calls: [string, unknown][] = [];
  const note = (what: string) => (value: unknown) => void calls.push([what, value]);
  const noteLater = (what: string) => async (value: unknown) => void calls.push([what, value]);
  const ids = (specs: readonly LinkSpec[]) => specs.map(({ id }) => id);
  return {
    calls,
    networks: { declare: noteLater('networks') },
    zgates: { declare: noteLater('zgates'), startOptions: () => ({}) },
    rs485: { buses: { declare: note('buses') } },
    field: {
      specs: () => linkSpecs(before, () => ({})),
      isBusy: (id: string) => busy.includes(id),
      close: noteLater('close'),
      open: (specs: readonly LinkSpec[]) => note('open')(ids(specs)),
    },
  };
}

it('leaves a link as it is while it executes a command, with its gateway and its network', async () => {
  const before = wiringOf({
    links: [loopback('zb'), loopback('a')],
    networks: [{ id: NETWORK }],
    zgates: [GATEWAY],
  });
  const wanted = wiringOf({ links: [loopback('a', { x: 1 }), loopback('b')] });
  const all = parts(before, ['zb', 'a']);
  const { wiring, rewired } = await rewire(all, before, wanted);
  expect(rewired).toEqual({ opened: ['b'], reopened: [], closed: [], busy: ['zb', 'a'] });
  expect(wiring.links.map(({ id }) => id).toSorted()).toEqual(['a', 'b', 'zb']);
  expect(all.calls).toEqual([
    ['networks', [{ id: NETWORK }]],
    ['close', []],
    ['zgates', [GATEWAY]],
    ['buses', [expect.objectContaining({ id: 'b' }), expect.objectContaining({ id: 'a' })]],
    ['open', ['b']],
  ]);
});

it('opens again what it has closed when the gateways cannot be stored', async () => {
  const before = wiringOf({ links: [loopback('a')] });
  const all = parts(before);
  const failing = { ...all, zgates: { ...all.zgates, declare: () => Promise.reject(new Error('full')) } };
  await expect(rewire(failing, before, wiringOf({ links: [loopback('a', { x: 1 })] }))).rejects.toThrow(
    'full',
  );
  expect(all.calls.slice(1)).toEqual([
    ['close', ['a']],
    ['open', ['a']],
  ]);
});
