/** What a lock does and reports, with zigbee-herdsman as the host. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Zcl } from 'zigbee-herdsman';
import { otaFile } from '../../ota-file.ts';
import { temporaryFolder } from '../../temporary.ts';
import type { SimulatedGateway } from './gateway.ts';
import {
  coordinatorOf,
  deviceOf,
  endpointOf,
  HOST_TIMEOUT_MS,
  type Host,
  listen,
  openHostWith,
  openStick,
} from './herdsman.ts';
import type { GatewayPlan } from './plan.ts';
import { crc16X25 } from './stick/security.ts';

const LOCK = '00158d0001000001';
const AT_ONCE = { sendPolicy: 'immediate', disableRecovery: true } as const;
/** Payloads are checked by the host itself. */
type Loose = {
  command(cluster: string, command: string, payload: object, options?: object): Promise<unknown>;
};

async function opened(plan: GatewayPlan): Promise<{ gateway: SimulatedGateway; host: Host; lock: Loose }> {
  const gateway = await openStick(plan);
  const host = await openHostWith(gateway, [LOCK]);
  const [target] = coordinatorOf(host).endpoints;
  if (!target) throw new Error('no endpoint');
  for (const cluster of ['closuresDoorLock', 'genAlarms', 'genPowerCfg'])
    await endpointOf(host, LOCK).bind(cluster, target);
  return { gateway, host, lock: endpointOf(host, LOCK) as unknown as Loose };
}

const NO_PIN = { pincodevalue: Buffer.alloc(0) };

it(
  'locks and unlocks, reports it, and keeps codes and schedules',
  async () => {
    const { gateway, host, lock } = await opened({
      locks: [
        {
          ieee: LOCK,
          eventMasks: 0xffff,
          pins: [{ user: 7, code: '1234' }],
          rfids: [{ user: 8, code: '04a1b2c3' }],
        },
      ],
    });
    const heard = listen(host);
    const events = () => heard.map(({ name, data }) => JSON.stringify([name, data]));
    const endpoint = endpointOf(host, LOCK);
    await endpoint.configureReporting('closuresDoorLock', [
      { attribute: 'lockState', minimumReportInterval: 0, maximumReportInterval: 3_600, reportableChange: 0 },
      { attribute: 'doorState', minimumReportInterval: 0, maximumReportInterval: 3_600, reportableChange: 0 },
    ]);
    const run = (command: string, payload: object) =>
      lock.command('closuresDoorLock', command, payload, AT_ONCE);
    expect(await run('unlockWithTimeout', { timeout: 1, ...NO_PIN })).toEqual({ status: 0 });
    await expect.poll(events).toContainEqual(expect.stringContaining('"lockState":2'));
    await expect.poll(events).toContainEqual(expect.stringContaining('"lockState":1'));
    const { executed, received } = await gateway.state(LOCK);
    expect(executed).toMatchObject([
      { what: 'unlock', source: 'rf' },
      { what: 'autoRelock', source: 'lock' },
    ]);
    const command = received.find(({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation);
    expect(command).toMatchObject({ command: 3, tsn: executed[0]?.tsn, payload: '010000' });
    expect(executed[0]?.startedMs).toBeGreaterThanOrEqual(command?.monotonicMs ?? Number.POSITIVE_INFINITY);

    await gateway.set(LOCK, { card: '04a1b2c3' });
    await expect
      .poll(events)
      .toContainEqual(expect.stringMatching(/"opereventsrc":3,"opereventcode":2,"userid":8/));
    await gateway.set(LOCK, { pin: '9999' });
    await expect.poll(events).toContainEqual(expect.stringMatching(/"opereventsrc":0,"opereventcode":5/));
    await gateway.set(LOCK, { door: 'forcedOpen' });
    await expect.poll(events).toContainEqual(expect.stringContaining('"doorState":3'));
    await expect.poll(events).toContainEqual(expect.stringMatching(/genAlarms.*"alarmcode":6/));

    const pin = { userid: 9, userstatus: 1, usertype: 0, pincodevalue: Buffer.from('4321') };
    expect(await run('setPinCode', pin)).toEqual({ status: 0 });
    expect(await run('setPinCode', { ...pin, userid: 10 })).toEqual({ status: 3 });
    expect(await run('getPinCode', { userid: 9 })).toMatchObject({
      userstatus: 1,
      pincodevalue: Buffer.from('4321'),
    });
    expect(await run('clearPinCode', { userid: 7 })).toEqual({ status: 0 });
    expect((await gateway.state(LOCK)).pins).toEqual([{ user: 9, status: 1, type: 0, code: '4321' }]);
    const week = {
      scheduleid: 0,
      userid: 9,
      daysmask: 31,
      starthour: 8,
      startminute: 0,
      endhour: 18,
      endminute: 30,
    };
    expect(await run('setWeekDaySchedule', week)).toEqual({ status: 0 });
    expect(await run('getWeekDaySchedule', { scheduleid: 0, userid: 9 })).toMatchObject({
      status: 0,
      daysmask: 31,
    });
    expect(await run('setWeekDaySchedule', { ...week, scheduleid: 9 })).toEqual({ status: 1 });

    expect(await endpoint.read('closuresDoorLock', ['operatingMode'])).toEqual({ operatingMode: 0 });
    await endpoint.write('closuresDoorLock', { operatingMode: 4 });
    await expect.poll(async () => (await gateway.state(LOCK)).lockState).toBe(2);
    await expect(endpoint.read('closuresDoorLock', ['doorClosedEvents', 'ledSettings'])).rejects.toThrow(
      'UNSUPPORTED',
    );
    await gateway.set(LOCK, { battery: { percent: 40 } });
    expect(await endpoint.read('genPowerCfg', ['batteryPercentageRemaining'])).toEqual({
      batteryPercentageRemaining: 80,
    });
  },
  HOST_TIMEOUT_MS,
);

it(
  'takes a configuration through its own cluster',
  async () => {
    const { gateway, host, lock } = await opened({ locks: [{ ieee: LOCK }] });
    const numbers = (names: string[], type: number) => names.map((name) => ({ name, type }));
    const { UINT8, UINT16, UINT32, OCTET_STR } = Zcl.DataType;
    const [id, version] = [
      { name: 'id', type: UINT8 },
      { name: 'configVersion', type: UINT32 },
    ];
    const cluster = {
      name: 'door',
      ID: 0xfc11,
      manufacturerCode: 0x1234,
      attributes: {
        config: { name: 'config', ID: 0, type: UINT32 },
        underLoad: { name: 'underLoad', ID: 0x21, type: UINT16 },
      },
      commands: {
        begin: {
          name: 'begin',
          ID: 0,
          response: 0,
          parameters: [id, version, ...numbers(['length', 'crc'], UINT16)],
        },
        chunk: {
          name: 'chunk',
          ID: 1,
          response: 0,
          parameters: [id, { name: 'offset', type: UINT16 }, { name: 'data', type: OCTET_STR }],
        },
        commit: {
          name: 'commit',
          ID: 2,
          response: 0,
          parameters: [id, ...numbers(['door', 'schedule', 'template', 'system'], UINT32)],
        },
      },
      commandsResponse: {
        result: { name: 'result', ID: 0, parameters: [id, { name: 'status', type: UINT8 }, version] },
      },
    };
    deviceOf(host, LOCK).addCustomCluster('door', cluster as never);
    const run = (command: string, payload: object) =>
      lock.command('door', command, { id: 5, ...payload }, AT_ONCE);
    const versions = { door: 2, schedule: 3, template: 4, system: 5 };
    // {1: true, 9: "101A"}
    const data = Buffer.from('a201f5096431303141', 'hex');
    const begin = { configVersion: 6, length: data.length, crc: crc16X25(data) };
    expect(await run('commit', versions)).toEqual({ id: 5, status: 1, configVersion: 0 });
    await run('begin', { ...begin, crc: begin.crc ^ 1 });
    await run('chunk', { offset: 0, data });
    expect(await run('commit', versions)).toEqual({ id: 5, status: 2, configVersion: 0 });
    expect(await run('begin', begin)).toEqual({ id: 5, status: 0, configVersion: 0 });
    expect(await run('begin', { ...begin, id: 6 })).toMatchObject({ status: 4 });
    await run('chunk', { offset: 0, data: data.subarray(0, 4) });
    expect(await run('chunk', { offset: 4, data: data.subarray(4) })).toMatchObject({ status: 0 });
    expect(await run('commit', versions)).toEqual({ id: 5, status: 0, configVersion: 6 });
    expect(await run('begin', { ...begin, configVersion: 5 })).toEqual({
      id: 5,
      status: 5,
      configVersion: 6,
    });
    expect(await endpointOf(host, LOCK).read('door', [0, 0x21], { manufacturerCode: 0x1234 })).toEqual({
      config: 6,
      underLoad: 5_720,
    });
    const { vendor, operatingMode } = await gateway.state(LOCK);
    expect(vendor).toMatchObject({
      versions: { config: 6, door: 2, schedule: 3, template: 4, systemConfig: 5 },
      applied: [{ configVersion: 6, configuration: { standOpenEnabled: true, name: '101A' } }],
    });
    // A permission opens nothing.
    expect(operatingMode).toBe(0);
  },
  HOST_TIMEOUT_MS,
);

it(
  'fetches a new firmware and runs it',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK }] });
    const file = join(temporaryFolder(), 'lock.ota');
    const version = 0x0200_0300;
    writeFileSync(file, otaFile(version, { bytes: 900 }));
    const update = deviceOf(host, LOCK).updateOta({ url: file }, undefined, undefined, {}, () => undefined, {
      requestTimeout: 10_000,
      responseDelay: 0,
      baseSize: 50,
    });
    await update;
    const { firmware } = await gateway.state(LOCK);
    expect(firmware).toMatchObject({ version, build: '2.0.3', download: { blocks: 20 } });
  },
  HOST_TIMEOUT_MS,
);
