/**
 * Modbus RTU on an RS-485 bus, and Modbus TCP: the devices of the options and of `watch` are polled and reported, each as its profile
 * says (profile.ts). The wire is the bus's (drivers/bus/bus.ts).
 *
 * To read in this order. A device: device.ts (contact and polls) → contact-steps.ts → device-state.ts (its report) →
 * observations.ts (inputs, alarms, restarts). What is done to it: pulses.ts → orders.ts →
 * live-pulses.ts → watchdog-guard.ts → relay-watch.ts → watchdog-expiry.ts → watchdog-test.ts. The bytes: messages.ts → frame.ts;
 * on a connection by tcp-port.ts; in ASCII, ascii.ts. Products: profile-shape.ts → registers.ts → profile-areas.ts → profile.ts. Addresses that are asked: probe.ts.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type Bus, openBus, openPort } from '../bus/bus.ts';
import { whenAsked } from '../bus/exchange.ts';
import type { Senders } from '../bus/late-replies.ts';
import type { Wire } from '../bus/line.ts';
import type { OpenPort } from '../bus/port.ts';
import {
  type Clock,
  type Driver,
  DriverError,
  type DriverLog,
  type OpenDriver,
  type Plain,
} from '../contract/driver.ts';
import type { Watch } from '../contract/rs485.ts';
import type { Rs485Applied, Rs485Apply, Rs485Report } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { type EventQueue, openEventQueue } from '../rs485/event-queue.ts';
import { type Commands, commonCommands, executing, runLink, type Until } from '../rs485/link.ts';
import { openMutex } from '../rs485/mutex.ts';
import { type Member, openPolling, openRegistry, type Registry } from '../rs485/registry.ts';
import { openRelayFaults } from '../rs485/relay-faults.ts';
import { underTest } from '../rs485/watchdog-proof.ts';
import { ASCII_LONGEST, asciiBus, rtuOf } from './ascii.ts';
import { type Device, openDevice } from './device.ts';
import { sendersOf } from './frame.ts';
import { openLivePulses } from './live-pulses.ts';
import { readRegisters, write } from './messages.ts';
import { checkedOptions, isModbusTcp, type ModbusOptions, withTurnaround } from './options.ts';
import { assertSame, isRefusal, readBack, sentByName } from './orders.ts';
import { probeAddress } from './probe.ts';
import { pollSpans } from './profile-areas.ts';
import { type Profile, profileShape } from './profile-shape.ts';
import { type EndPulse, type Fire, openEndPulse, openPulse } from './pulses.ts';
import { blockOf, readsOf, refusalOf, registersOf, type Span, versionIn, withRead } from './registers.ts';
import { firedRelaysOf, openRelayWatch, type RelayWatch } from './relay-watch.ts';
import { openShownVersions, type ShownVersions } from './shown-versions.ts';
import { modbusTcpOver, openGatewayPort } from './tcp-port.ts';
import { openWatchdogExpiry, type WatchdogExpiry } from './watchdog-expiry.ts';
import { watchdogGuardOf } from './watchdog-guard.ts';
import { openWatchdogTest, type TestWatchdog } from './watchdog-test.ts';

/** As configured, with the profiles that are named there. What cannot be true of one is looked for where it is read (profile.ts). */
const driverOptions = checkedOptions
  .safeExtend({ profiles: z.record(z.string().max(4_096), profileShape) })
  .transform(withTurnaround);

export const openModbus: OpenDriver = openModbusOn((options, ...rest) =>
  isModbusTcp(options.port) ? openGatewayPort(options, ...rest) : openPort(options, ...rest),
);

/** `openPort`: a test gives one of its own. On modbus-tcp it carries the bytes of the connection. */
export function openModbusOn(openPort: OpenPort): OpenDriver {
  return async (data, context, signal) => {
    const options = valid(driverOptions, data, 'INVALID_OPTIONS');
    const named = (name: string): Profile => {
      const profile = options.profiles[name];
      if (profile) return profile;
      throw new DriverError('INVALID_OPTIONS', `profiles has no "${name}"`);
    };
    const profiles = new Map(
      options.devices.map(({ unitId, profile }) => [unitId, named(profile ?? options.profile)]),
    );
    const usual = named(options.profile);
    const { clock, log, linkId, report } = context;
    await using opening = new AsyncDisposableStack();
    const bus = opening.use(await openFramed({ options, openPort, clock, log }, signal));
    const events = openEventQueue(context);
    const closing = new AbortController();
    const link: Link = {
      linkId,
      clock,
      log,
      bus,
      everyMs: options.pollEveryMs,
      configured: [...profiles.keys()],
      profileAt: (unit) => profiles.get(unit) ?? usual,
      // Plain, but for optional keys in its type.
      reportState: (state) => report({ subject: `device:${state.hwId}`, state: state as Plain }),
      addEvent: events.add,
      closing: closing.signal,
      expected: new Map(),
      versions: openShownVersions(clock),
    };
    const devices: Devices = opening.use(
      openRegistry(
        (unit) => openMember(link, unit, devices),
        (unit) => link.expected.get(unit),
        link.reportState,
      ),
    );
    opening.defer(() => closing.abort(new DriverError('LINK_LOST', 'the link is closed')));
    watch(link, devices, []);
    const parts = { bus, events, context, warnings: devices.warnings, repeat: devices.report };
    const opened = opening.move();
    return {
      run: (runSignal) => runLink(parts, runSignal),
      execute: executing(commandsOf(link, devices), 'a Modbus link'),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    } satisfies Driver;
  };
}

/** A bus on which the driver speaks RTU, whatever its frames are. */
async function openFramed(
  context: Pick<Wire, 'openPort' | 'clock' | 'log'> & { options: ModbusOptions },
  signal: AbortSignal,
): Promise<Bus> {
  const { openPort, options } = context;
  if (isModbusTcp(options.port)) {
    const port = { openPort: modbusTcpOver(openPort), gapMs: 0 };
    return await openBus({ ...context, ...port, senders: sendersOf }, signal);
  }
  if (options.framing === 'rtu') return await openBus({ ...context, senders: sendersOf }, signal);
  const senders: Senders = (received) => sendersOf(rtuOf(received));
  return asciiBus(await openBus({ ...context, senders, longestFrame: ASCII_LONGEST }, signal));
}

interface Link {
  linkId: string;
  clock: Clock;
  log: DriverLog;
  bus: Bus;
  everyMs: number;
  /** Unit ids of the options, which are polled whatever the daemon watches. */
  configured: readonly number[];
  profileAt(unit: number): Profile;
  reportState(report: Rs485Report): void;
  addEvent: EventQueue['add'];
  /** Fires when the driver closes. */
  closing: AbortSignal;
  /** The hwId that the daemon expects at a unit id. */
  expected: ReadonlyMap<number, string>;
  versions: ShownVersions;
}

/** One device, and what is done to it. */
interface ModbusMember extends Member {
  device: Device;
  fire: Fire;
  endPulse: EndPulse;
  testWatchdog: TestWatchdog;
  expiry: WatchdogExpiry;
}

/** The devices that are polled: those of the options, and those that the daemon watches. */
type Devices = Registry<ModbusMember>;

function openMember(link: Link, unit: number, devices: Devices): ModbusMember {
  const { linkId, clock, log, bus, everyMs, reportState, addEvent, closing } = link;
  const profile = link.profileAt(unit);
  const live = openLivePulses(profile, clock);
  const guard = watchdogGuardOf(unit, profile, live, clock);
  const expiry = openWatchdogExpiry(
    () => device,
    () => polling,
    clock,
    log,
    closing,
  );
  const busFor = (opens: boolean): Pick<Bus, 'exchange' | 'outstanding' | 'isContested'> => ({
    outstanding: bus.outstanding,
    isContested: bus.isContested,
    exchange: (exchange, order, signal) =>
      bus.exchange(expiry.guarded(guard.watched(exchange), opens), order, signal),
  });
  const hwId = () => device.hwId();
  const faults = openRelayFaults(clock, hwId, addEvent, () => device.report());
  const device: Device = openDevice({
    linkId,
    unit,
    profile,
    clock,
    log,
    everyMs,
    reportState,
    addEvent,
    pulses: live,
    relayFault: faults.shown,
    guard,
    claim(hwId) {
      if (devices.claim(unit, hwId)) return true;
      devices.holderOf(hwId)?.device.doubt();
      return false;
    },
    isTaken: (hwId) => devices.isTaken(unit, hwId),
    versions: link.versions,
    polled: () => relays.polled(),
    staysClosed: () => void expiry.keep().catch(() => undefined),
  });
  const polling = openPolling(bus, device.poll);
  const common = { device, clock, log, live, faults, mutex: openMutex(), closing };
  const relays: RelayWatch = openRelayWatch({
    ...common,
    bus: busFor(true),
    expiry,
    guard,
    fired: firedRelaysOf(clock, linkId),
  });
  const parts = { ...common, bus: busFor(false), relays, polling, guard, versions: link.versions };
  return {
    device,
    fire: openPulse(parts),
    endPulse: openEndPulse(parts),
    testWatchdog: openWatchdogTest(parts),
    expiry,
    [Symbol.dispose]() {
      polling[Symbol.dispose]();
      device[Symbol.dispose]();
    },
  };
}

function watch(link: Link, devices: Devices, watched: Watch['devices']): void {
  link.expected = new Map(watched.map(({ address, hwId }) => [address, hwId]));
  devices.settle(new Set([...link.configured, ...link.expected.keys()]));
}

function commandsOf(link: Link, devices: Devices): Commands {
  const { bus, linkId, profileAt } = link;
  const tested = new Set<number>();
  return commonCommands(bus, {
    watch: (list) => watch(link, devices, list.devices),
    named: devices.named,
    assertMayBeAsked: (units) => assertMayBeAsked(units, tested, devices),
    probeAddress: (address, repeats, asking) =>
      probeAddress(address, repeats, asking, profileAt(address), linkId),
    applySettings: ({ device }, apply, until) => applySettings(apply, device, link, until),
    async testWatchdog({ device, testWatchdog }, test, { signal }) {
      tested.add(device.unit);
      try {
        return await testWatchdog(test, signal);
      } finally {
        tested.delete(device.unit);
      }
    },
    endPulse: ({ endPulse }, { relay }, until) => endPulse(relay, until),
    pulse: ({ fire }, wanted, until) => fire(wanted, until),
  });
}

/** Throws BUSY: a question to this device would feed a watchdog that is tested, or that is to open a relay. */
function assertMayBeAsked(units: readonly number[], tested: ReadonlySet<number>, devices: Devices): void {
  const unit = units.find((one) => tested.has(one));
  if (unit !== undefined) throw underTest(unit);
  const held = units.find((one) => devices.at(one)?.expiry.isHeld());
  if (held !== undefined)
    throw new DriverError(
      'BUSY',
      `a relay of device ${held} does not open, and its watchdog is to open it: ask nothing of it meanwhile`,
    );
}

/** Of a reading. */
const ATTEMPTS = 3;

/**
 * Puts settings in force: the whole block in one write, where the device does not show it already, then read back with what a poll reads, and then
 * the name: where devices change places meanwhile, it was another one that took them. They are sent once, as a poll shows a device by the version of
 * its settings: nothing else than NO_REPLY, BAD_REPLY and OUTCOME_UNKNOWN says that another one may have them.
 */
async function applySettings(
  apply: Rs485Apply,
  device: Device,
  link: Pick<Link, 'bus' | 'clock' | 'versions'>,
  until: Until,
): Promise<Rs485Applied> {
  const { settingsVersion, settings } = apply;
  const { profile } = device;
  const refusal = refusalOf(profile, settings);
  if (refusal !== undefined) throw new DriverError('REFUSED', refusal);
  const block = blockOf(profile);
  const registers =
    block &&
    (await written(apply, block, device, link, until).catch(async (error: unknown) => {
      // It is final where the device itself has said so.
      if (isRefusal(error))
        await assertSame({ ...link, device }, { hwId: apply.hwId, ...until }).catch((other: unknown) => {
          throw maybeTaken(other);
        });
      throw error;
    }));
  device.applied(settings, settingsVersion, registers);
  return { reportedSettingsVersion: settingsVersion };
}

/** Returns the block as it was read back. */
async function written(
  { hwId, settingsVersion, settings }: Rs485Apply,
  block: Span,
  device: Device,
  { bus, clock, versions }: Pick<Link, 'bus' | 'clock' | 'versions'>,
  { deadline, signal }: Until,
): Promise<number[]> {
  const { unit, profile } = device;
  const order = { class: 'settings', deadline, attempts: ATTEMPTS, isFresh: true } as const;
  const { address, quantity } = block;
  const read = () => bus.exchange(readRegisters(unit, { functionCode: 3, address, quantity }), order, signal);
  const named = { bus, device, clock };
  const own = { ...order, hwId, signal };
  const registers = await read();
  const image = withRead(device.image(), block, registers);
  const values = registersOf(profile, { registers, image }, { settingsVersion, settings });
  const isShown = isDeepStrictEqual(registers, values);
  const taken = async () => {
    const shown = isShown ? registers : await read();
    for (const span of readsOf(pollSpans(profile))) await readBack(bus, device, span, own);
    if (!isDeepStrictEqual(shown, values)) throw notInForce();
    await assertSame(named, own);
    if (versionIn(device.image(), profile) !== settingsVersion) throw notInForce();
  };
  if (isShown) await taken();
  else {
    await assertSame(named, own);
    const request = write(unit, { functionCode: 16, address, values });
    const exchange = whenAsked(request, () => versions.written(settingsVersion));
    const failure = await sentByName(named, exchange, { ...own, attempts: 1 });
    // Its reply says no more than that: it may be lost, or be that of another one.
    await taken().catch((error: unknown) => {
      throw maybeTaken(failure ?? error);
    });
  }
  return values;
}

const notInForce = () =>
  new DriverError(
    'BAD_REPLY',
    'the device acknowledged the settings, and shows others: they are written again; where that goes on, restart the device',
  );

function maybeTaken(error: unknown): unknown {
  if (!(error instanceof DriverError) || error.code === 'BAD_REPLY' || error.code === 'NO_REPLY')
    return error;
  return new DriverError('OUTCOME_UNKNOWN', error.message, { cause: error });
}
