/**
 * Plans of locks as their makers ship them, from public sources, which each names. What a source does not say is as the
 * standard has it: these were not measured on a real lock.
 */
import type { z } from 'zod';
import type { lockSchema } from './plan.ts';

type Family = Omit<Partial<z.input<typeof lockSchema>>, 'ieee'>;

const EVENT_MASKS = [64, 65, 66, 67, 68, 69, 70, 71];
const OPERATING_MODES = [37, 38];
const RELOCK_TIME = 35;
const EVERY_COMMAND = Array.from({ length: 0x1a }, (_, id) => id);
const UNLOCK_WITH_TIMEOUT = 3;
const POWER = 0x0001;

export const FAMILIES = {
  /** zigbee-herdsman-converters, yale: its plain definition. An event of one is in issue 647 of the same. */
  'yale-assure': { manufacturer: 'Yale', model: 'YRD226/246 TSDB' },
  /** zha-device-handlers, yale/realliving.py: its battery. */
  'yale-real-living': { manufacturer: 'Yale', model: 'YRD220/240 TSDB', wholePercent: true },
  /** zigbee2mqtt, issues 8946 (an event without its text) and 31652 (its descriptor, without the power configuration). */
  'yale-digital': {
    manufacturer: 'Yale',
    model: 'YMC420',
    unlisted: [POWER],
    operations: 'noText',
    lacksAttributes: EVENT_MASKS,
  },
  /** zigbee-herdsman-converters, yale: SOLIS01, with its notes. */
  'yale-solis': {
    manufacturer: 'Yale',
    model: 'SOLIS01',
    wholePercent: true,
    operations: 'noText',
    lacksAttributes: EVENT_MASKS,
  },
  /** The same, yale: YRD256-TSDB, c4_lock_operation_event. */
  'yale-control4': {
    manufacturer: 'Yale',
    model: 'YRD256-TSDB',
    operations: 'control4',
    keepsLockState: true,
    lacksAttributes: EVENT_MASKS,
  },
  /** sprut/Hub, issue 469: its attributes. It has no auto-relock time, no operating mode and no sensor of the door. */
  danalock: {
    manufacturer: 'Danalock',
    model: 'V3-BTZB',
    eventMasks: 0xffff,
    lacksAttributes: [RELOCK_TIME, ...OPERATING_MODES, 68, 69, 70, 71],
    hasDoorSensor: false,
  },
  /** zigbee-herdsman-converters, pull request 1686: endpoint 2. */
  schlage: { manufacturer: 'Schlage', model: 'BE468', endpoint: 2 },
  /** zigbee2mqtt, issue 30714: endpoint 2. */
  kwikset: {
    manufacturer: 'Kwikset',
    model: 'SMARTCODE_DEADBOLT_10T_W3',
    manufacturerCode: 4242,
    endpoint: 2,
  },
  /** zha-device-handlers, issue 5235: a report of its attribute 0x0100. AutoRelockTime is 1 for on. */
  nimly: {
    manufacturer: 'Onesti Products AS',
    model: 'NimlyPRO',
    endpoint: 11,
    wholePercent: true,
    operations: 'nimly',
    autoRelockSeconds: 1,
    faults: { relocksMs: 7_000 },
    lacksCommands: [UNLOCK_WITH_TIMEOUT],
    lacksAttributes: [...EVENT_MASKS, ...OPERATING_MODES],
  },
  /** deconz-rest-plugin, issue 4253: its events, which end in the middle of the local time. */
  easycode: {
    manufacturer: 'Onesti Products AS',
    model: 'EasyCode903G2.1',
    endpoint: 11,
    operations: 'easyCode',
    autoRelockSeconds: 1,
    faults: { relocksMs: 7_000 },
    lacksCommands: [UNLOCK_WITH_TIMEOUT],
    lacksAttributes: [...EVENT_MASKS, ...OPERATING_MODES],
  },
  /** zigbee2mqtt, issue 18456: its descriptor. */
  'id-lock': { manufacturer: 'Datek', model: 'ID Lock 202', manufacturerCode: 4919 },
  /** zigbee-herdsman-converters, lumi: ZNMS12LM, for which it knows no command. */
  aqara: {
    manufacturer: 'LUMI',
    model: 'lumi.lock.acn02',
    manufacturerCode: 0x115f,
    operations: 'none',
    keepsLockState: true,
    lacksCommands: EVERY_COMMAND,
  },
} satisfies Record<string, Family>;
