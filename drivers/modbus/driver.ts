/**
 * Modbus RTU on an RS-485 bus, and Modbus TCP: the devices of the options and of `watch` are polled and reported, each as its profile
 * says (profile.ts). The wire is the bus's (drivers/bus/bus.ts).
 *
 * To read in this order. A device: devices.ts → device.ts (contact and polls) → contact-steps.ts → device-state.ts (its report) →
 * observations.ts (inputs, alarms, restarts). What is done to it: apply.ts → settings-block.ts · pulses.ts → orders.ts →
 * live-pulses.ts → watchdog-guard.ts → relay-watch.ts → watchdog-expiry.ts → watchdog-test.ts. The bytes: exchanges.ts → frame.ts →
 * messages.ts; on a connection in the frames of tcp-port.ts → tcp-frame.ts; in ASCII, ascii-bus.ts → ascii-frame.ts. Products: profile-shape.ts → registers.ts → profile-areas.ts → profile-faults.ts. Addresses that are asked: probe.ts.
 */
import { z } from 'zod';
import { type Bus, type OpenBusOptions, openBus, openPort } from '../bus/bus.ts';
import type { Senders } from '../bus/late-replies.ts';
import type { OpenPort } from '../bus/port.ts';
import { type Driver, DriverError, type OpenDriver, type Plain } from '../contract/driver.ts';
import type { Rs485Report } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { openEventQueue } from '../rs485/event-queue.ts';
import { type Commands, commonCommands, executing, runLink } from '../rs485/link.ts';
import { applySettings } from './apply.ts';
import { asciiBus } from './ascii-bus.ts';
import { ASCII_LONGEST, rtuOf } from './ascii-frame.ts';
import { type Devices, openDevices } from './devices.ts';
import { sendersOf } from './frame.ts';
import { checkedOptions, isModbusTcp, type ModbusOptions, withTurnaround } from './options.ts';
import { probeAddress } from './probe.ts';
import { profileSchema } from './profile.ts';
import type { Profile } from './profile-shape.ts';
import { modbusTcpOver, openGatewayPort } from './tcp-port.ts';

/** As configured, with the profiles that are named there. */
const driverOptions = checkedOptions
  .safeExtend({ profiles: z.record(z.string().max(4_096), profileSchema) })
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
    const profileAt = (unit: number) => profiles.get(unit) ?? usual;
    const { clock, log, linkId, report } = context;
    await using opening = new AsyncDisposableStack();
    const bus = opening.use(await openFramed({ options, openPort, clock, log }, signal));
    const events = openEventQueue({ emit: context.emit, clock, log });
    const { pollEveryMs: everyMs } = options;
    // Plain, but for optional keys in its type.
    const reportState = (state: Rs485Report) =>
      report({ subject: `device:${state.hwId}`, state: state as Plain });
    const common = { linkId, clock, log, bus, everyMs, profileAt };
    const devices = opening.use(
      openDevices({ ...common, reportState, addEvent: events.add, configured: [...profiles.keys()] }),
    );
    const parts = { bus, events, context, warnings: devices.warnings, repeat: devices.report };
    const opened = opening.move();
    return {
      run: (runSignal) => runLink(parts, runSignal),
      execute: executing(commandsOf({ linkId, bus, profileAt, devices }), 'a Modbus link'),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    } satisfies Driver;
  };
}

/** A bus on which the driver speaks RTU, whatever its frames are. */
async function openFramed(
  context: Pick<OpenBusOptions, 'openPort' | 'clock' | 'log'> & { options: ModbusOptions },
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

interface CommandsOptions {
  linkId: string;
  bus: Bus;
  profileAt(unit: number): Profile;
  devices: Devices;
}

function commandsOf({ linkId, bus, profileAt, devices }: CommandsOptions): Commands {
  return commonCommands(bus, {
    watch: (list) => devices.watch(list.devices),
    assertMayBeAsked: devices.assertMayBeAsked,
    probeAddress: (address, repeats, asking) =>
      probeAddress(address, repeats, { ...asking, linkId, profileAt }),
    applySettings: async (apply, until) => applySettings(apply, devices.named(apply.hwId).device, bus, until),
    testWatchdog: (test, { signal }) => devices.testWatchdog(test, signal),
    endPulse: async ({ hwId, relay }, { deadline, signal }) =>
      devices.named(hwId).endPulse(relay, deadline, signal),
    pulse: async (wanted, { deadline, signal }) => devices.named(wanted.hwId).fire(wanted, deadline, signal),
  });
}
