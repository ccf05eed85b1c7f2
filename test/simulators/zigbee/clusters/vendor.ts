/**
 * The manufacturer-specific cluster 0xFC11, version 1: versions in force, firmware versions, batteries, and a
 * configuration that is sent in chunks and put in force at its commit, whole or not at all.
 *
 *   to the lock    0x00 begin  transferId u8, configVersion u32, length u16, crc16 u16
 *                  0x01 chunk  transferId u8, offset u16, data octet string of at most 48 bytes
 *                  0x02 commit transferId u8, doorVersion, scheduleVersion, templateVersion, systemConfigVersion u32
 *   from the lock  0x00 result transferId u8, status u8, configVersion u32 (the one in force), to each of them
 *
 * The CRC is that of install codes, CRC-16/X-25 (test/simulators/zigbee/stick/security.ts), over the configuration. What cannot be read as one
 * is refused with 3, a map with a field that the lock does not know among it.
 */
import { bytes, u32 } from '../bytes.ts';
import type { LockPlan } from '../plan.ts';
import { crc16X25 } from '../stick/security.ts';
import type { Time } from '../time.ts';
import { type Answer, type Attribute, type Cluster, constant, fieldOf, responded } from '../zcl/cluster.ts';
import { TYPE, type Value } from '../zcl/types.ts';
import { readConfiguration } from './configuration.ts';
import type { Battery } from './general.ts';

const VENDOR_CLUSTER = 0xfc11;
const STATUS = { ok: 0, unknownTransfer: 1, badSum: 2, notSupported: 3, busy: 4, older: 5 } as const;
const CHUNK_MAX = 48;
const CONFIGURATION_MAX = 8_192;
/** A transfer that no one goes on with makes room for another. */
const TRANSFER_IDLE_MS = 30_000;

export interface Applied {
  monotonicMs: number;
  configVersion: number;
  configuration: Record<string, unknown>;
}

export interface Vendor {
  cluster: Cluster;
  versions: Record<'config' | 'door' | 'schedule' | 'template' | 'systemConfig', number>;
  /** Everything that was put in force, the latest last. */
  applied(): Applied[];
  /** What it last refused, in words. */
  lastRefusal(): string | null;
}

interface Transfer {
  id: number;
  configVersion: number;
  crc: number;
  data: Buffer;
  /** Bytes that have come, from the beginning. */
  received: number;
  touchedAt: number;
}

const APPLIED_MAX = 100;

export function openVendor(time: Time, plan: LockPlan, battery: Battery): Vendor {
  const versions = { config: 0, door: 0, schedule: 0, template: 0, systemConfig: 0 };
  const applied: Applied[] = [];
  let transfer: Transfer | undefined;
  let lastRefusal: string | null = null;

  const result = (id: number, status: number): Answer =>
    responded(0x00, bytes(id, status, u32(versions.config)));
  const refused = (id: number, status: number, reason: string): Answer => {
    lastRefusal = reason;
    return result(id, status);
  };
  const isIdle = () => !transfer || time.now() - transfer.touchedAt > TRANSFER_IDLE_MS;

  function commit(id: number, others: [number, number, number, number]): Answer {
    const done = transfer;
    if (done?.id !== id) return refused(id, STATUS.unknownTransfer, `no transfer ${id} is open`);
    transfer = undefined;
    if (done.received < done.data.length || crc16X25(done.data) !== done.crc)
      return refused(
        id,
        STATUS.badSum,
        `${done.received} of ${done.data.length} bytes, or another check sum`,
      );
    try {
      const configuration = readConfiguration(done.data);
      versions.config = done.configVersion;
      [versions.door, versions.schedule, versions.template, versions.systemConfig] = others;
      applied.push({ monotonicMs: time.now(), configVersion: done.configVersion, configuration });
      if (applied.length > APPLIED_MAX) applied.shift();
      return result(id, STATUS.ok);
    } catch (error) {
      return refused(id, STATUS.notSupported, error instanceof Error ? error.message : String(error));
    }
  }
  return {
    versions,
    applied: () => [...applied],
    lastRefusal: () => lastRefusal,
    cluster: {
      id: VENDOR_CLUSTER,
      manufacturer: plan.manufacturerCode,
      attributes: attributesOf(plan, battery, versions),
      commands: {
        0(input) {
          const [id, configVersion, length, crc] = [input.u8(), input.u32(), input.u16(), input.u16()];
          if (!isIdle() && transfer?.id !== id) return refused(id, STATUS.busy, 'another transfer is open');
          if (configVersion < versions.config)
            return refused(id, STATUS.older, `${configVersion} is older than ${versions.config}`);
          if (length > CONFIGURATION_MAX)
            return refused(id, STATUS.notSupported, `${length} bytes are more than ${CONFIGURATION_MAX}`);
          const data = Buffer.alloc(length);
          transfer = { id, configVersion, crc, data, received: 0, touchedAt: time.now() };
          return result(id, STATUS.ok);
        },
        1(input) {
          const [id, offset] = [input.u8(), input.u16()];
          const data = input.bytes(input.u8());
          if (transfer?.id !== id) return refused(id, STATUS.unknownTransfer, `no transfer ${id} is open`);
          const isWithin = offset <= transfer.received && offset + data.length <= transfer.data.length;
          if (data.length > CHUNK_MAX || !isWithin)
            return refused(
              id,
              STATUS.badSum,
              `${data.length} bytes at ${offset} do not follow ${transfer.received}`,
            );
          transfer.data.set(data, offset);
          // A chunk that is sent again changes nothing.
          transfer.received = Math.max(transfer.received, offset + data.length);
          transfer.touchedAt = time.now();
          return result(id, STATUS.ok);
        },
        2: (input) => commit(input.u8(), [input.u32(), input.u32(), input.u32(), input.u32()]),
      },
    },
  };
}

function attributesOf(
  plan: LockPlan,
  battery: Battery,
  versions: Vendor['versions'],
): Record<number, Attribute> {
  const version = (key: keyof Vendor['versions']) =>
    fieldOf(versions as Record<keyof Vendor['versions'], Value>, key, TYPE.uint32, { isReportable: true });
  return {
    0: version('config'),
    1: version('door'),
    2: version('schedule'),
    3: version('template'),
    4: version('systemConfig'),
    16: constant(TYPE.string, plan.versions.lcu),
    17: constant(TYPE.string, plan.versions.ble),
    18: constant(TYPE.string, plan.versions.lcc),
    19: constant(TYPE.string, plan.versions.sam),
    32: { type: TYPE.uint16, get: () => battery.withoutLoadMv, isReportable: true },
    33: { type: TYPE.uint16, get: () => battery.underLoadMv, isReportable: true },
    48: constant(TYPE.bitmap32, plan.capabilities),
  };
}
