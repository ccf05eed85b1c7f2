/** What a lock is told once, after it joined: to report, and to whom; and what it is asked about itself. */
import type { Clock } from '../driver.ts';
import { ATTRIBUTES, CLUSTER_ID, TYPE } from './lock-cluster.ts';
import type { Radio, ZclReply } from './radio.ts';
import { DOOR_LOCK_ATTRIBUTE } from './standard-lock.ts';

/** A lock is heard of so often, or is missing. */
export const REPORT_EVERY_S = 3_600;
/** A change of this in half percent is told, and no more often than this. */
const BATTERY_STEP = 2;
const BATTERY_EVERY_S = 43_200;
/** For one exchange with a lock that is awake. */
const STEP_MS = 5_000;
/** Attributes read at once: names of 32 characters still fit a frame. */
const READ_MAX = 3;

export const CLUSTER = { power: 0x00_01, alarms: 0x00_09, doorLock: 0x01_01, diagnostics: 0x0b_05 } as const;
/** Attributes of the power configuration and of the diagnostics cluster (ZCL rev. 8, table 3-19 and 3.15.2.3). */
export const BATTERY_PERCENTAGE = 0x00_21;
export const LAST_RSSI = 0x01_1d;

export interface ConfigureTarget {
  ieee: string;
  endpoint: number;
  inputs: readonly number[];
  /** The name of the lock's own cluster in the library; undefined: it has none, or it is not to be used. */
  ownCluster: string | undefined;
}

type ReadTarget = Pick<ConfigureTarget, 'ieee' | 'endpoint'>;

export interface Configurer {
  /** True when the lock has answered to everything. A lock that does not is told again when it is heard of. */
  configure(target: ConfigureTarget): Promise<boolean>;
  /** Reads attributes; what they are is heard as from any frame. False: no answer. */
  read(target: ReadTarget, cluster: string, attributes: readonly number[]): Promise<boolean>;
}

export function openConfigurer(radio: Pick<Radio, 'send' | 'bind'>, clock: Clock): Configurer {
  async function foundation(
    { ieee, endpoint }: ReadTarget,
    cluster: string,
    command: string,
    payload: readonly Record<string, unknown>[],
  ): Promise<ZclReply> {
    const notAfter = clock.monotonic() + STEP_MS;
    const common = { ieee, endpoint, cluster, command, payload, notAfter, timeoutMs: STEP_MS };
    return radio.send({ ...common, scope: 'foundation' });
  }

  async function read(target: ReadTarget, cluster: string, attributes: readonly number[]): Promise<boolean> {
    for (let from = 0; from < attributes.length; from += READ_MAX) {
      const records = attributes.slice(from, from + READ_MAX).map((attrId) => ({ attrId }));
      const reply = await foundation(target, cluster, 'read', records);
      if (reply.kind !== 'answered') return false;
    }
    return true;
  }

  /** A lock that cannot report an attribute says so, which is an answer. */
  async function reporting(
    target: ConfigureTarget,
    cluster: string,
    records: readonly Record<string, unknown>[],
  ): Promise<boolean> {
    return (await foundation(target, cluster, 'configReport', records)).kind === 'answered';
  }

  async function steps(target: ConfigureTarget): Promise<boolean> {
    const { ieee, endpoint, inputs, ownCluster } = target;
    const bound = ['closuresDoorLock'];
    if (inputs.includes(CLUSTER.power)) bound.push('genPowerCfg');
    if (inputs.includes(CLUSTER.alarms)) bound.push('genAlarms');
    if (ownCluster) bound.push(ownCluster);
    for (const cluster of bound) await radio.bind(ieee, endpoint, cluster);
    const state = { dataType: TYPE.enum8, direction: 0, minRepIntval: 0, maxRepIntval: REPORT_EVERY_S };
    const { lockState, doorState } = DOOR_LOCK_ATTRIBUTE;
    const states = [lockState, doorState].map((attrId) => ({ attrId, ...state }));
    if (!(await reporting(target, 'closuresDoorLock', states))) return false;
    if (!(await read(target, 'closuresDoorLock', Object.values(DOOR_LOCK_ATTRIBUTE)))) return false;
    if (bound.includes('genPowerCfg')) {
      const interval = { minRepIntval: REPORT_EVERY_S, maxRepIntval: BATTERY_EVERY_S };
      const battery = { attrId: BATTERY_PERCENTAGE, direction: 0, dataType: TYPE.uint8, ...interval };
      if (!(await reporting(target, 'genPowerCfg', [{ ...battery, repChange: BATTERY_STEP }]))) return false;
      if (!(await read(target, 'genPowerCfg', [BATTERY_PERCENTAGE]))) return false;
    }
    if (inputs.includes(CLUSTER.diagnostics) && !(await read(target, 'haDiagnostic', [LAST_RSSI])))
      return false;
    return ownCluster === undefined || (await own(target, ownCluster));
  }

  async function own(target: ConfigureTarget, cluster: string): Promise<boolean> {
    const reportable = ATTRIBUTES.filter((attribute) => attribute.reportable).map(({ id, type }) => ({
      attrId: id,
      direction: 0,
      dataType: type,
      minRepIntval: 0,
      maxRepIntval: BATTERY_EVERY_S,
      repChange: 1,
    }));
    for (let from = 0; from < reportable.length; from += READ_MAX)
      if (!(await reporting(target, cluster, reportable.slice(from, from + READ_MAX)))) return false;
    const ids = ATTRIBUTES.map(({ id }) => id);
    return read(target, cluster, ids);
  }

  return {
    configure: (target) => steps(target).catch(() => false),
    read,
  };
}

export function hasOwnCluster(inputs: readonly number[]): boolean {
  return inputs.includes(CLUSTER_ID);
}
