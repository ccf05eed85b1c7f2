/** The first configuration of a lock: what it reports, its binding, and its attributes that are read; in independent steps. */
import { type Clock, DriverError } from '../contract/driver.ts';
import { ATTRIBUTES, CLUSTER_ID, TYPE } from './lock-cluster.ts';
import { DOOR_LOCK, type Radio, type ZclReply } from './radio.ts';
import {
  ALARM_MASK,
  type AttributeWrite,
  BATTERY_ALARM_MASK,
  DOOR_LOCK_ATTRIBUTE,
  OPERATION_MASKS,
  PROGRAMMING_MASKS,
  SET_PIN_CODE,
  SET_RFID_CODE,
  statusesIn,
  UNLOCK_DOOR,
  UNLOCK_WITH_TIMEOUT,
} from './standard-lock.ts';
import { field } from './values.ts';
import { STATUS_SUCCESS, statusName } from './zcl-status.ts';

/** A lock is heard of so often, or is missing. */
export const REPORT_EVERY_S = 3_600;
/** Reportable change, in half percent, and the longest interval between two reports. */
const BATTERY_STEP = 2;
const BATTERY_EVERY_S = 43_200;
/** For one exchange with a lock that is awake. */
const STEP_MS = 5_000;
/** After so many steps in a row without an answer the lock sleeps or is away; the other steps wait for the next try. */
const SILENT_MAX = 3;
/** ZCL header with a manufacturer code, within the 82 bytes that an unfragmented APS frame carries at least. */
const RECORDS_MAX_BYTES = 82 - 5;
/** Texts of the locks' own cluster have up to 32 characters. */
const TEXT_MAX_BYTES = 33;
const READ_RECORD_HEAD_BYTES = 4;
/** Commands 0x00 to 0x1f: the standard ends at 0x19. */
const COMMANDS_MAX = 32;

export const CLUSTER = { power: 0x00_01, alarms: 0x00_09, doorLock: 0x01_01, diagnostics: 0x0b_05 } as const;
/** Attributes of the power configuration and of the diagnostics cluster (ZCL rev. 8, table 3-19 and 3.15.2.3). */
export const BATTERY_PERCENTAGE = 0x00_21;
export const BATTERY_ALARM_STATE = 0x00_3e;
export const LAST_RSSI = 0x01_1d;

export interface ConfigureTarget {
  ieee: string;
  endpoint: number;
  inputs: readonly number[];
  /** The name of the lock's own cluster in the library; undefined: it has none, or it is not to be used. */
  ownCluster: string | undefined;
}

type ReadTarget = Pick<ConfigureTarget, 'ieee' | 'endpoint'>;

/** A step that failed. The next try begins with the steps that this one did not reach. */
export interface StepFault {
  step: string;
  reason: string;
}

export interface Configurer {
  /** `only`: the steps to do, in this order; without it all of them. Gives those that are to be tried again. */
  configure(target: ConfigureTarget, only?: readonly string[]): Promise<StepFault[]>;
  /** Reads attributes; what they are is heard as from any frame. False: no answer. */
  read(target: ReadTarget, cluster: string, attributes: readonly number[]): Promise<boolean>;
}

/** What a step ends with. `silent`: the lock did not answer. */
type StepEnd = { reason: string; silent: boolean } | undefined;
type Step = readonly [name: string, run: () => Promise<StepEnd>];

const SILENT: StepEnd = { reason: 'the lock did not answer', silent: true };

/**
 * Statuses by which a lock says that it never will (ZCL rev. 8, table 2-12): it does not have the command, the attribute
 * or reports of it. They end a step as success does.
 */
const NEVER = [0x81, 0x82, 0x86, 0x88, 0x8c, 0x8d, 0xc3];

type Records = readonly Record<string, unknown>[];

type ConfigurerRadio = Pick<Radio, 'send' | 'bind' | 'remember'>;

/** `radio` gives the present one. */
export function openConfigurer(radio: () => ConfigurerRadio, clock: Clock): Configurer {
  const exchanges = openExchanges(radio, clock);
  return {
    configure: (target, only) => runSteps(inOrder(stepsFor(target, exchanges), only)),
    read: exchanges.read,
  };
}

interface Exchanges {
  bind(target: ReadTarget, cluster: string): Promise<StepEnd>;
  read: Configurer['read'];
  write(target: ReadTarget, cluster: string, writes: readonly AttributeWrite[]): Promise<StepEnd>;
  configureReporting(target: ReadTarget, cluster: string, records: Records): Promise<StepEnd>;
  discoverCommands(target: ReadTarget): Promise<StepEnd>;
}

function openExchanges(radio: () => ConfigurerRadio, clock: Clock): Exchanges {
  function foundation(
    { ieee, endpoint }: ReadTarget,
    cluster: string,
    command: string,
    payload: Records | Record<string, unknown>,
  ): Promise<ZclReply> {
    const notAfter = clock.monotonic() + STEP_MS;
    const common = { ieee, endpoint, cluster, command, payload, notAfter, timeoutMs: STEP_MS };
    return radio().send({ ...common, scope: 'foundation' });
  }
  return {
    async bind({ ieee, endpoint }, cluster) {
      try {
        await radio().bind(ieee, endpoint, cluster);
        return undefined;
      } catch (error) {
        if (error instanceof DriverError && error.code === 'REFUSED')
          return { reason: error.message, silent: false };
        return SILENT;
      }
    },
    async read(target, cluster, attributes) {
      let isAnswered = true;
      for (const part of partsOf(cluster, attributes)) {
        const records = part.map((attrId) => ({ attrId }));
        const reply = await foundation(target, cluster, 'read', records);
        if (reply.kind !== 'answered') isAnswered = false;
      }
      return isAnswered;
    },
    async write(target, cluster, writes) {
      const records = writes.map((one) => ({ ...one }));
      return endOf(await foundation(target, cluster, 'write', records));
    },
    async configureReporting(target, cluster, records) {
      let end: StepEnd;
      for (let from = 0; from < records.length; from += REPORTING_MAX) {
        const part = records.slice(from, from + REPORTING_MAX);
        end = endOf(await foundation(target, cluster, 'configReport', part)) ?? end;
      }
      return end;
    },
    async discoverCommands(target) {
      const payload = { startCmdId: 0, maxCmdIds: COMMANDS_MAX };
      const reply = await foundation(target, DOOR_LOCK, 'discoverCommands', payload);
      if (reply.kind !== 'answered') return SILENT;
      const ids = field(reply.payload, 'commandIds');
      const isWhole = field(reply.payload, 'discComplete') === 1;
      // Without this answer the first unlock shows it.
      if (Array.isArray(ids) && ids.includes(UNLOCK_DOOR))
        radio().remember(target.ieee, {
          timedUnlock: ids.includes(UNLOCK_WITH_TIMEOUT),
          lacksPins: isWhole && !ids.includes(SET_PIN_CODE),
          lacksCards: isWhole && !ids.includes(SET_RFID_CODE),
        });
      return undefined;
    },
  };
}

function stepsFor(target: ConfigureTarget, exchanges: Exchanges): Step[] {
  const { inputs, ownCluster } = target;
  const binding = (cluster: string): Step => [`binding of ${cluster}`, () => exchanges.bind(target, cluster)];
  const reading = (cluster: string, attributes: readonly number[]): Step => [
    `attributes of ${cluster}`,
    async () => ((await exchanges.read(target, cluster, attributes)) ? undefined : SILENT),
  ];
  const reporting = (cluster: string, records: Records): Step => [
    `reporting of ${cluster}`,
    () => exchanges.configureReporting(target, cluster, records),
  ];
  const mask = (what: string, cluster: string, writes: readonly AttributeWrite[]): Step => [
    what,
    () => exchanges.write(target, cluster, writes),
  ];
  const ofAlarms: Step[] = [binding('genAlarms'), mask('alarm mask', DOOR_LOCK, ALARM_MASK)];
  const ofPower: Step[] = [
    binding('genPowerCfg'),
    reporting('genPowerCfg', BATTERY_REPORTS),
    reading('genPowerCfg', [BATTERY_PERCENTAGE, BATTERY_ALARM_STATE]),
    mask('battery alarm mask', 'genPowerCfg', BATTERY_ALARM_MASK),
  ];
  const ofOwn = (cluster: string): Step[] => [
    binding(cluster),
    reporting(cluster, OWN_REPORTS),
    reading(
      cluster,
      ATTRIBUTES.map(({ id }) => id),
    ),
  ];
  return [
    binding(DOOR_LOCK),
    reporting(DOOR_LOCK, STATE_REPORTS),
    [
      'reporting of the auto-relock time',
      () => exchanges.configureReporting(target, DOOR_LOCK, RELOCK_REPORTS),
    ],
    reading(DOOR_LOCK, Object.values(DOOR_LOCK_ATTRIBUTE)),
    ['commands of closuresDoorLock', () => exchanges.discoverCommands(target)],
    mask('operation event masks', DOOR_LOCK, OPERATION_MASKS),
    mask('programming event masks', DOOR_LOCK, PROGRAMMING_MASKS),
    ...(inputs.includes(CLUSTER.alarms) ? ofAlarms : []),
    ...(inputs.includes(CLUSTER.power) ? ofPower : []),
    ...(inputs.includes(CLUSTER.diagnostics) ? [reading('haDiagnostic', [LAST_RSSI])] : []),
    ...(ownCluster === undefined ? [] : ofOwn(ownCluster)),
  ];
}

function inOrder(steps: readonly Step[], only: readonly string[] | undefined): readonly Step[] {
  if (!only) return steps;
  const byName = new Map(steps.map((step) => [step[0], step]));
  return only.map((name) => byName.get(name)).filter((step) => step !== undefined);
}

async function runSteps(steps: readonly Step[]): Promise<StepFault[]> {
  const failed: StepFault[] = [];
  const unreached: StepFault[] = [];
  let silent = 0;
  for (const [step, run] of steps) {
    if (silent >= SILENT_MAX) {
      unreached.push({ step, reason: 'not tried yet: the lock did not answer to the steps before' });
      continue;
    }
    const end = await run().catch((): StepEnd => SILENT);
    silent = end?.silent ? silent + 1 : 0;
    if (end) failed.push({ step, reason: end.reason });
  }
  return [...unreached, ...failed];
}

function endOf(reply: ZclReply): StepEnd {
  if (reply.kind !== 'answered') return SILENT;
  const statuses = statusesIn(reply.payload);
  const refused = statuses.find((one) => one !== STATUS_SUCCESS && !NEVER.includes(one ?? -1));
  if (statuses.length > 0 && refused === undefined) return undefined;
  return { reason: `the lock refused it: ${statusName(refused)}`, silent: false };
}

/** Attributes whose answers fit one frame, whatever they hold. */
function partsOf(cluster: string, attributes: readonly number[]): number[][] {
  const parts: number[][] = [];
  let left = 0;
  for (const id of attributes) {
    const size = READ_RECORD_HEAD_BYTES + valueBytes(cluster, id);
    const part = left >= size ? parts.at(-1) : undefined;
    if (part) part.push(id);
    else parts.push([id]);
    left = (part ? left : RECORDS_MAX_BYTES) - size;
  }
  return parts;
}

function valueBytes(cluster: string, id: number): number {
  const isStandard = cluster === DOOR_LOCK || cluster === 'genPowerCfg' || cluster === 'haDiagnostic';
  const type = isStandard ? undefined : ATTRIBUTES.find((one) => one.id === id)?.type;
  // Of those of the standard that are read, none has more than 32 bits; genBasic has texts.
  return isStandard || (type !== undefined && type !== TYPE.text) ? 4 : TEXT_MAX_BYTES;
}

/** Records of Configure Reporting in one frame. */
const REPORTING_MAX = 3;
const STATE = { dataType: TYPE.enum8, direction: 0, minRepIntval: 0, maxRepIntval: REPORT_EVERY_S };
const STATE_REPORTS = [DOOR_LOCK_ATTRIBUTE.lockState, DOOR_LOCK_ATTRIBUTE.doorState].map((attrId) => ({
  attrId,
  ...STATE,
}));
/** It can be set at the lock, too (ZCL rev. 8, 7.3.2.13.4). */
const RELOCK_REPORTS = [
  {
    attrId: DOOR_LOCK_ATTRIBUTE.autoRelockTime,
    direction: 0,
    dataType: TYPE.uint32,
    minRepIntval: 0,
    maxRepIntval: BATTERY_EVERY_S,
    repChange: 1,
  },
];
const BATTERY_REPORTS = [
  {
    attrId: BATTERY_PERCENTAGE,
    direction: 0,
    dataType: TYPE.uint8,
    minRepIntval: REPORT_EVERY_S,
    maxRepIntval: BATTERY_EVERY_S,
    repChange: BATTERY_STEP,
  },
  {
    attrId: BATTERY_ALARM_STATE,
    direction: 0,
    dataType: TYPE.bitmap32,
    minRepIntval: 0,
    maxRepIntval: BATTERY_EVERY_S,
  },
];
const OWN_REPORTS = ATTRIBUTES.filter(({ reportable }) => reportable).map(({ id, type }) => ({
  attrId: id,
  direction: 0,
  dataType: type,
  minRepIntval: 0,
  maxRepIntval: BATTERY_EVERY_S,
  repChange: 1,
}));

export function hasOwnCluster(inputs: readonly number[]): boolean {
  return inputs.includes(CLUSTER_ID);
}
