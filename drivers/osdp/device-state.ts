/** What is known of one device, what follows from what it says, and the report of it. */
import type { Clock, DriverLog } from '../contract/driver.ts';
import type { CredentialEvent } from '../contract/rs485.ts';
import {
  OUTPUT_PINS,
  type Rs485Carries,
  type Rs485Report,
  type Rs485Settings,
  SESSION_FAULTS,
  type SessionFault,
} from '../contract/settings.ts';
import { carriesOf, unsupportedOf } from '../rs485/carries.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type Inputs, openInputs } from './inputs.ts';
import type { Alarm } from './protocol/alarms.ts';
import { type Capability, type Identity, type Reply, timerTenths } from './protocol/messages.ts';
import { GATEHOUSE_VENDOR_CODE, type VendorReply, type VendorStatus } from './protocol/vendor-messages.ts';

/** What others know of it. */
export type SessionFacts = Pick<
  Rs485Report,
  'connected' | 'security' | 'sessionFault' | 'pulse' | 'provenKey'
>;

export interface DeviceState {
  hwId(): string | undefined;
  /** It says of itself what it can take to heart: settings, counters, its product. */
  isOurs(): boolean;
  outputs(): readonly number[] | undefined;
  /** Asked at this time or later (monotonic), it has shown this output as off. */
  isReadOff(output: number, since: number): boolean;
  /** How many there are; undefined while no one knows. */
  outputCount(): number | undefined;
  ledCount(): number;
  buzzerCount(): number;
  /** As it says of itself (annex B); undefined: it says nothing of this function. */
  capability(code: number): Capability | undefined;
  /** Most bytes of a message that it can receive, where it says so. */
  messageMax(): number | undefined;
  settings(): Rs485Settings | null;
  /** Of the settings in force; undefined: settings were sent to it, and it has not shown since which it has. */
  settingsVersion(): number | undefined;
  /** Settings are sent to it. */
  settingsSent(): void;
  /** How often it was started, as it said last; undefined: it does not say. */
  bootCount(): number | undefined;
  /** Who it says it is. True when that is another one than before. */
  meet(identity: Identity): boolean;
  able(capabilities: readonly Capability[]): void;
  /** It had nothing to report (ACK to a POLL): what it reports next happened after this. */
  quiet(askedAt: number): void;
  /** `askedAt`: monotonic, when the request was sent first that this replies to. */
  heard(reply: Reply, askedAt: number): void;
  madeKnown(reply: VendorReply): void;
  /** Settings that it cannot keep, which are kept here. */
  keep(settings: Rs485Settings, version: number): void;
  /** False: it has no messages of ours, whatever its vendor code. */
  setOurs(isOurs: boolean): void;
  /** It has other settings than it showed last. */
  hasOtherSettings(): boolean;
  /** What is wrong with the wire to it: published when it begins and when it ends. */
  alarm(alarm: Alarm, raised: boolean): void;
  /** Another session says what is wrong with it. */
  clearAlarms(): void;
  /** What its inputs count from now on follows nothing that was read before. */
  forgetCounters(): void;
  /** Those that are raised now. */
  alarms(): readonly Alarm[];
  /** Why there is no session with it, though it answers. */
  sessionFault(): SessionFault | null;
  report(more: SessionFacts): Rs485Report | undefined;
}

export interface StateOptions {
  address: number;
  clock: Clock;
  log: DriverLog;
  /** The hwId that is expected at the address. */
  expected(): string | undefined;
  addEvent(event: DeviceEvent): void;
}

/** Annex B. */
export const FUNCTION = {
  inputs: 1,
  outputs: 2,
  leds: 4,
  buzzer: 5,
  text: 6,
  receive: 10,
  readers: 13,
} as const;

/** Vendor, model and serial number: what is together the device's own. */
export function hwIdOf({ vendorCode, model, serial }: Identity): string {
  return `${vendorCode.toString(16).padStart(6, '0')}-${model}-${serial}`;
}

export function typeOf({ vendorCode, model, version }: Identity): string {
  return `OSDP ${vendorCode.toString(16).padStart(6, '0')} model ${model}.${version}`;
}

interface Facts {
  identity: Identity;
  /** undefined: not reported. */
  capabilities: readonly Capability[] | undefined;
  isOurs: boolean;
  product: (VendorReply & { kind: 'product' }) | undefined;
  settings: { settings: Rs485Settings; settingsVersion: number } | undefined;
  /** As it said last; undefined: not since settings were sent to it. */
  shownVersion: number | undefined;
  status: VendorStatus | undefined;
  local: { tamper: boolean; powerFault: boolean } | undefined;
  outputs: readonly number[] | undefined;
  inputs: Inputs;
  /** When it was last asked what there is, and had nothing to report; null: not yet. */
  quietAt: number | null;
  /** When they were reported, as asked for then; undefined: not yet. */
  inputsAt: number | undefined;
  outputsAt: number | undefined;
}

export function openDeviceState(options: StateOptions): DeviceState {
  const { address, log, expected, addEvent } = options;
  let facts: Facts | undefined;
  const alarms = new Set<Alarm>();
  const hwId = () => facts && hwIdOf(facts.identity);

  function alarm(name: Alarm, raised: boolean): void {
    if (alarms.has(name) === raised) return;
    if (raised) alarms.add(name);
    else alarms.delete(name);
    const known = hwId() ?? expected();
    log.warn(
      { address, hwId: known, alarm: name, raised },
      raised ? 'the wire to a device is suspect' : 'the wire to a device is suspect no more',
    );
    if (known !== undefined) addEvent({ kind: 'alarm', hwId: known, alarm: name, raised });
  }

  return {
    hwId,
    isOurs: () => facts?.isOurs === true,
    outputs: () => facts?.outputs,
    isReadOff: (output, since) => facts?.outputs?.[output] === 0 && (facts.outputsAt ?? 0) >= since,
    outputCount: () => facts && (countOf(facts, FUNCTION.outputs) ?? facts.outputs?.length),
    ledCount: () => (facts && countOf(facts, FUNCTION.leds)) ?? 0,
    buzzerCount: () => (facts && countOf(facts, FUNCTION.buzzer)) ?? 0,
    capability: (code) => facts?.capabilities?.find((capability) => capability.code === code),
    messageMax: () => facts && receiveBufferOf(facts),
    settings: () => facts?.settings?.settings ?? null,
    settingsVersion: () => (facts?.isOurs ? facts.shownVersion : (facts?.settings?.settingsVersion ?? 0)),
    settingsSent() {
      if (facts) facts.shownVersion = undefined;
    },
    bootCount: () => facts?.status?.bootCount,
    hasOtherSettings: () =>
      facts?.status !== undefined && facts.status.settingsVersion !== facts.settings?.settingsVersion,
    meet(identity) {
      const isSame = facts !== undefined && hwIdOf(facts.identity) === hwIdOf(identity);
      if (facts && isSame) facts.identity = identity;
      else facts = factsOf(identity, options);
      return !isSame;
    },
    able(capabilities) {
      // An empty list says nothing of its pins, and they are those that it shows.
      if (facts && capabilities.length > 0) facts.capabilities = capabilities;
    },
    quiet(askedAt) {
      if (facts) facts.quietAt = askedAt;
    },
    heard(reply, askedAt) {
      if (facts) takeReply(facts, reply, askedAt, addEvent);
    },
    madeKnown(reply) {
      if (facts) takeVendorReply(facts, reply);
    },
    setOurs(isOurs) {
      if (facts) facts.isOurs = isOurs;
    },
    keep(settings, settingsVersion) {
      if (facts) facts.settings = { settings, settingsVersion };
    },
    alarm,
    clearAlarms() {
      for (const name of [...alarms]) alarm(name, false);
    },
    forgetCounters: () => facts?.inputs.forgetCounters(),
    alarms: () => [...alarms],
    sessionFault: () => SESSION_FAULTS.find((fault) => alarms.has(fault)) ?? null,
    report: (more) => facts && reportOf(facts, address, more),
  };
}

function takeReply(known: Facts, reply: Reply, askedAt: number, addEvent: StateOptions['addEvent']): void {
  const hwId = hwIdOf(known.identity);
  const fault = (alarm: 'tamper' | 'supply', before = false, raised = false) => {
    if (raised !== before) addEvent({ kind: 'alarm', hwId, alarm, raised });
  };
  switch (reply.kind) {
    case 'LSTATR':
      fault('tamper', known.local?.tamper, reply.tamper);
      fault('supply', known.local?.powerFault, reply.powerFault);
      known.local = reply;
      break;
    case 'ISTATR':
      known.inputs.levels(reply.inputs, known.settings?.settings, known.quietAt);
      known.inputsAt = askedAt;
      break;
    case 'OSTATR':
      known.outputs = reply.outputs;
      known.outputsAt = askedAt;
      break;
    case 'RAW':
    case 'KEYPAD':
      addEvent({ kind: 'credential', hwId, since: known.quietAt, ...credentialOf(reply) });
      break;
    default:
  }
}

function takeVendorReply(known: Facts, reply: VendorReply): void {
  if (reply.kind === 'product') known.product = reply;
  const version = known.settings?.settingsVersion;
  if (reply.kind === 'settings') {
    const remembered = known.settings?.settings.useInputPinMemory;
    if (remembered === false) known.inputs.startCounters();
    // It may have had those of another one in between, which clear them.
    else if (version !== reply.settingsVersion) known.inputs.forgetCounters();
    known.settings = reply;
    known.shownVersion = reply.settingsVersion;
  }
  if (reply.kind === 'status') {
    const { status: before } = known;
    const { bootCount, inputEdges, settingsVersion } = reply.status;
    const isOther = (before && before.bootCount !== bootCount) || version !== settingsVersion;
    if (isOther) known.inputs.forgetCounters();
    known.inputs.counters(inputEdges, known.settings?.settings);
    known.status = reply.status;
    known.shownVersion = settingsVersion;
  }
}

function factsOf(identity: Identity, { clock, addEvent }: StateOptions): Facts {
  const hwId = hwIdOf(identity);
  return {
    identity,
    capabilities: undefined,
    isOurs: identity.vendorCode === GATEHOUSE_VENDOR_CODE,
    product: undefined,
    settings: undefined,
    shownVersion: undefined,
    status: undefined,
    local: undefined,
    outputs: undefined,
    inputs: openInputs({ hwId, clock, addEvent }),
    quietAt: null,
    inputsAt: undefined,
    outputsAt: undefined,
  };
}

function countOf({ capabilities }: Facts, code: number): number | undefined {
  return capabilities?.find((capability) => capability.code === code)?.count;
}

/** Annex B.11: least significant byte where others have the compliance level, then the other one. */
function receiveBufferOf({ capabilities }: Facts): number | undefined {
  const heard = capabilities?.find(({ code }) => code === FUNCTION.receive);
  return heard && heard.compliance + 256 * heard.count;
}

function reportOf(facts: Facts, address: number, more: SessionFacts): Rs485Report {
  const { identity, product, local } = facts;
  const known = facts.settings;
  const unlock = known?.settings.unlockDurationMilliseconds ?? null;
  const carries = carriedBy(facts);
  return {
    ...more,
    hwId: hwIdOf(identity),
    address,
    profile: null,
    type: product?.type || typeOf(identity),
    platform: { version: product?.platformVersion || identity.firmware.join('.') },
    apps: product?.app.name ? [product.app] : [],
    reportedSettingsVersion: known?.settingsVersion ?? 0,
    settings: known?.settings ?? null,
    levels: more.connected ? levelsOf(facts) : {},
    ...(more.connected && readAtOf(facts)),
    edges: facts.inputs.edges(),
    tamper: local?.tamper ?? null,
    supplyFault: local?.powerFault ?? null,
    effectiveUnlockMilliseconds: unlock === null ? null : effectiveMs(unlock),
    ...(carries && { carries, unsupported: unsupportedOf(carries) }),
  };
}

/** Of the older ones of inputs and outputs. */
function readAtOf({ inputsAt, outputsAt }: Facts): Pick<Rs485Report, 'readAt'> {
  const heard = [inputsAt, outputsAt].filter((at) => at !== undefined);
  return heard.length > 0 ? { readAt: Math.min(...heard) } : {};
}

function levelsOf({ inputs, outputs = [] }: Facts): Rs485Report['levels'] {
  const shown = outputs.slice(0, OUTPUT_PINS.length).map((level, index) => [OUTPUT_PINS[index], level === 1]);
  return { ...inputs.shown(), ...Object.fromEntries(shown) };
}

/** undefined: it has not said it yet, or not inside a session where that is required. */
function carriedBy(facts: Facts): Rs485Carries | undefined {
  const { capabilities, outputs, isOurs } = facts;
  if (!capabilities && !outputs) return undefined;
  return carriesOf({
    // One that refuses CAP shows what it has.
    inputs: capabilities ? (countOf(facts, FUNCTION.inputs) ?? 0) : facts.inputs.count(),
    outputs: countOf(facts, FUNCTION.outputs) ?? outputs?.length ?? 0,
    pinMemory: isOurs,
  });
}

/** As a device times it: in tenths of a second, never shorter than asked for. */
export function effectiveMs(milliseconds: number): number {
  return 100 * timerTenths(milliseconds);
}

/** 7.11: 1 is P/data/P, as on a Wiegand interface; 0 is not said. */
const WIEGAND = 1;

/** What a reader read, as it is passed on. */
function credentialOf(
  reply: Reply & { kind: 'RAW' | 'KEYPAD' },
): Pick<CredentialEvent, 'reader' | 'format' | 'bits' | 'count'> {
  const { reader } = reply;
  if (reply.kind === 'KEYPAD') return { reader, format: 'keypad', bits: null, count: reply.digits.length };
  return {
    reader,
    format: reply.format === WIEGAND ? 'wiegand' : 'raw',
    bits: Buffer.from(reply.bits).toString('hex'),
    count: reply.bitCount,
  };
}
