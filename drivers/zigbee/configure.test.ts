/** The first configuration of a lock, step by step, against a lock that answers as a test says. */
import { expect, it } from 'vitest';
import { LOCK } from '../../test/drivers/zigbee/gateway.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { DriverError } from '../contract/driver.ts';
import { openConfigurer } from './configure.ts';
import { ATTRIBUTES, TYPE } from './lock-cluster.ts';
import { LOCK_CLUSTER, type ZclReply, type ZclRequest } from './radio.ts';

const TARGET = { ieee: LOCK, endpoint: 1, inputs: [0x0001, 0x0009, 0x0101, 0x0b05], ownCluster: undefined };
const WRITTEN = [{ status: 0 }];

interface Played {
  reply?(request: ZclRequest): ZclReply | undefined;
  bind?(cluster: string): void;
}

function open({ reply, bind }: Played = {}) {
  const sent: ZclRequest[] = [];
  const bound: string[] = [];
  const meta: Record<string, unknown> = {};
  const radio = {
    async send(request: ZclRequest): Promise<ZclReply> {
      sent.push(request);
      return reply?.(request) ?? { kind: 'answered', payload: WRITTEN };
    },
    async bind(_: string, __: number, cluster: string) {
      bind?.(cluster);
      bound.push(cluster);
    },
    remember: (_: string, values: Record<string, unknown>) => void Object.assign(meta, values),
  };
  return { configurer: openConfigurer(() => radio, manualClock()), sent, bound, meta };
}

const attributesOf = (sent: ZclRequest[], command: string, cluster: string) =>
  sent
    .filter((one) => one.command === command && one.cluster === cluster)
    .flatMap(({ payload }) => payload as Record<string, unknown>[]);

it('writes every alarm and event mask, whose default is 0', async () => {
  const { configurer, sent } = open();
  expect(await configurer.configure(TARGET)).toEqual([]);
  const masks = attributesOf(sent, 'write', 'closuresDoorLock');
  const ids = masks.map(({ attrId }) => attrId as number).toSorted((a, b) => a - b);
  expect(ids).toEqual([0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47]);
  for (const { attrData, dataType } of masks) {
    expect(dataType).toBe(TYPE.bitmap16);
    expect(attrData).toBeGreaterThan(0);
  }
  // Forced open and wrong codes: bits 6 and 4 (ZCL rev. 8, 7.3.2.15.1).
  expect(masks.find(({ attrId }) => attrId === 0x40)?.attrData).toBe(0b0111_1011);
  expect(attributesOf(sent, 'write', 'genPowerCfg')).toMatchObject([{ attrId: 0x35, attrData: 1 }]);
});

it('has the percentage and the alarm state of the battery reported and read', async () => {
  const { configurer, sent } = open();
  await configurer.configure(TARGET);
  for (const command of ['configReport', 'read'])
    expect(attributesOf(sent, command, 'genPowerCfg').map(({ attrId }) => attrId)).toEqual([0x21, 0x3e]);
});

it('does all other steps when one binding is refused, and tries again that one alone', async () => {
  let isFull = true;
  const bind = (cluster: string) => {
    if (isFull && cluster === 'closuresDoorLock')
      throw new DriverError('REFUSED', 'the lock refused it: TABLE_FULL (0x8c)');
  };
  const whole = open();
  await whole.configurer.configure(TARGET);
  const { configurer, sent, bound } = open({ bind });
  const faults = await configurer.configure(TARGET);
  expect(faults).toEqual([
    { step: 'binding of closuresDoorLock', reason: 'the lock refused it: TABLE_FULL (0x8c)' },
  ]);
  expect(sent).toEqual(whole.sent);
  expect(bound).toEqual(['genAlarms', 'genPowerCfg']);
  isFull = false;
  sent.length = 0;
  expect(
    await configurer.configure(
      TARGET,
      faults.map(({ step }) => step),
    ),
  ).toEqual([]);
  expect(sent).toEqual([]);
  expect(bound).toContain('closuresDoorLock');
});

it('distinguishes what the lock never can from what it refuses now', async () => {
  // UNSUPPORTED_ATTRIBUTE, and INSUFFICIENT_SPACE (ZCL rev. 8, table 2-12).
  const status = ({ cluster }: ZclRequest) => (cluster === 'genPowerCfg' ? 0x89 : 0x86);
  const reply = (request: ZclRequest): ZclReply | undefined =>
    request.command === 'configReport' || request.command === 'write'
      ? { kind: 'answered', payload: [{ status: status(request), attrId: 0 }] }
      : undefined;
  const faults = await open({ reply }).configurer.configure(TARGET);
  expect(faults).toEqual([
    { step: 'reporting of genPowerCfg', reason: 'the lock refused it: INSUFFICIENT_SPACE (0x89)' },
    { step: 'battery alarm mask', reason: 'the lock refused it: INSUFFICIENT_SPACE (0x89)' },
  ]);
});

it('stops for a lock that does not answer, and begins the next try with what it did not reach', async () => {
  const reply = (): ZclReply => ({ kind: 'unanswered', reason: 'no answer in time' });
  const { configurer, sent } = open({ reply });
  const faults = await configurer.configure(TARGET);
  expect(sent).toHaveLength(5);
  expect(new Set(faults.map(({ step }) => step)).size).toBe(faults.length);
  expect(faults.at(0)).toMatchObject({ reason: expect.stringContaining('not tried yet') });
  const all = await open().configurer.configure(
    TARGET,
    faults.map(({ step }) => step),
  );
  expect(all).toEqual([]);
  const again = await configurer.configure(
    TARGET,
    faults.map(({ step }) => step),
  );
  expect(again.at(0)?.step).not.toBe(faults.at(0)?.step);
});

it('remembers whether the lock receives Unlock with Timeout', async () => {
  const asked = async (payload: unknown) => {
    const reply = ({ command }: ZclRequest): ZclReply | undefined =>
      command === 'discoverCommands' ? { kind: 'answered', payload } : undefined;
    const { configurer, meta, sent } = open({ reply });
    expect(await configurer.configure(TARGET)).toEqual([]);
    expect(sent.find(({ command }) => command === 'discoverCommands')?.payload).toEqual({
      startCmdId: 0,
      maxCmdIds: 32,
    });
    return meta.timedUnlock;
  };
  expect(await asked({ discComplete: 1, commandIds: [0, 1, 3] })).toBe(true);
  expect(await asked({ discComplete: 1, commandIds: [0, 1, 2] })).toBe(false);
  // UNSUP_GENERAL_COMMAND in a default response, and an answer without the mandatory commands.
  expect(await asked({ cmdId: 0x11, statusCode: 0x82 })).toBeUndefined();
  expect(await asked({ discComplete: 1, commandIds: [] })).toBeUndefined();
});

it('reads attributes in parts whose answers fit a frame of 82 bytes', async () => {
  const { configurer, sent } = open();
  await configurer.configure({ ...TARGET, ownCluster: LOCK_CLUSTER });
  // A record of Read Attributes Response: id, status, type and value (ZCL rev. 8, 2.5.2); texts have 32 characters.
  const own = (id: number) => (ATTRIBUTES.find((one) => one.id === id)?.type === TYPE.text ? 33 : 4);
  for (const { cluster, payload } of sent.filter(({ command }) => command === 'read')) {
    const ids = (payload as { attrId: number }[]).map(({ attrId }) => attrId);
    const bytes = ids.reduce((sum, id) => sum + 4 + (cluster === LOCK_CLUSTER ? own(id) : 4), 5);
    expect(bytes).toBeLessThanOrEqual(82);
  }
  const asked = attributesOf(sent, 'read', LOCK_CLUSTER).map(({ attrId }) => attrId);
  expect(asked).toEqual(ATTRIBUTES.map(({ id }) => id));
});
