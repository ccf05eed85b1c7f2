/**
 * OSDP on an RS-485 bus, as the control panel: the devices of the options and of `watch` are polled, each in its session
 * (protocol/session.ts). The wire is the bus's (drivers/bus/bus.ts).
 */
import { isDeepStrictEqual } from 'node:util';
import { type Bus, openBus, openPort } from '../bus/bus.ts';
import { characterMs } from '../bus/options.ts';
import type { OpenPort } from '../bus/port.ts';
import {
  type Driver,
  type DriverContext,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../contract/driver.ts';
import { abortFile, readdress, sendFile, showOnReader } from '../contract/osdp.ts';
import { type Pulse, pair } from '../contract/rs485.ts';
import type { Rs485Applied, Rs485Apply, Rs485Report, Rs485Settings } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { openEventQueue } from '../rs485/event-queue.ts';
import {
  type Commands,
  command,
  commonCommands,
  deviceCommand,
  executing,
  type ProbeAsking,
  runLink,
  type Until,
} from '../rs485/link.ts';
import type { Device } from './device.ts';
import { type Devices, type OsdpMember, openDevices } from './devices.ts';
import { openFiles } from './files.ts';
import { type OsdpOptions, osdpOptions } from './options.ts';
import { probeAddress } from './probe.ts';
import { sendersOf } from './protocol/frame.ts';
import { openFeedback, showAtReader } from './reader-show.ts';
import { askVendor } from './readout.ts';
import { openDecrypt, redactKeys } from './trace.ts';

/** Silence before a message (5.7). */
const GAP_CHARACTERS = 2;
/** A bad wire loses one question of ten. */
const PRESENCE_PROBES = 2;

export const openOsdp: OpenDriver = openOsdpOn(openPort);

/** `openPort`: a test gives one of its own. */
export function openOsdpOn(openPort: OpenPort): OpenDriver {
  return async (data, context, signal) => {
    const options = valid(osdpOptions, data, 'INVALID_OPTIONS');
    const { clock, log, report } = context;
    await using opening = new AsyncDisposableStack();
    const gapMs = GAP_CHARACTERS * characterMs(options);
    const decrypt = openDecrypt((address) => devices.deviceAt(address)?.session.state().outstanding);
    const bus = opening.use(
      await openBus(
        { options, openPort, clock, log, gapMs, redact: redactKeys, decrypt, senders: sendersOf },
        signal,
      ),
    );
    const events = openEventQueue(context);
    // Plain, but for optional keys in its type.
    const reportState = (state: Rs485Report) =>
      report({ subject: `device:${state.hwId}`, state: state as Plain });
    const devices = opening.use(openDevices({ clock, log, bus, options, reportState, addEvent: events.add }));
    const parts = { bus, events, context, warnings: devices.warnings, repeat: devices.report };
    const opened = opening.move();
    return {
      run: (runSignal) => runLink(parts, runSignal),
      execute: executing(commandsOf(options, context, bus, devices), 'an OSDP link'),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    } satisfies Driver;
  };
}

function commandsOf(options: OsdpOptions, context: DriverContext, bus: Bus, devices: Devices): Commands {
  const { clock } = context;
  const firePulse = openFire(options, context, devices.closing);
  const files = openFiles(clock, characterMs(options), bus, devices.named);
  const { check } = options;
  const probing = { check, clock, lateReplies: devices.lateReplies };
  const probeOne = (address: number, repeats: number, asking: ProbeAsking) =>
    // With other characters there is no session to keep to.
    probeAddress(address, repeats, asking, probing, asking.isTuned ? () => undefined : devices.deviceAt);
  return {
    ...commonCommands(bus, {
      watch: devices.watch,
      named: devices.named,
      probeAddress: probeOne,
      applySettings: ({ device }, apply, until) => applySettings(apply, device, until),
      endPulse: ({ pulses }, { hwId, relay }, until) =>
        pulses.end(hwId, relay, { class: 'command', ...until }),
      pulse: firePulse,
    }),
    pair: command(pair, (wanted, { signal }) => devices.pair(wanted, signal)),
    sendFile: command(sendFile, (wanted, { signal }) => files.send(wanted, signal)),
    abortFile: command(
      abortFile,
      async (wanted, { deadline, signal }) => void (await files.abort(wanted, deadline, signal)),
    ),
    showOnReader: deviceCommand(showOnReader, devices.named, ({ device }, wanted, until) =>
      showAtReader(device, wanted, until),
    ),
    readdress: command(readdress, (wanted, until) => {
      const asking = { ...until, bus, isTuned: false };
      const isTaken = async (address: number) => {
        const { counters } = await probeOne(address, PRESENCE_PROBES, asking);
        return counters.replies + counters.refusals + counters.collisions > 0;
      };
      return devices.readdress(wanted, isTaken, until);
    }),
  };
}

/** Fires, and has the reader show the outcome; the caller does not wait for that. */
function openFire({ feedback }: OsdpOptions, { clock, log }: DriverContext, closing: AbortSignal) {
  const show = openFeedback(feedback, clock, log, closing);
  return async ({ device, pulses }: OsdpMember, wanted: Pulse, until: Until) => {
    const shown = (verdict: 'granted' | 'denied') =>
      void show(device, verdict).catch((error: unknown) =>
        log.error({ err: error }, 'no feedback was given'),
      );
    try {
      const pulsed = await pulses.fire(wanted, until);
      shown('granted');
      return pulsed;
    } catch (error) {
      if (error instanceof DriverError && error.code === 'REFUSED') shown('denied');
      throw error;
    }
  };
}

/**
 * Puts settings in force. A device of ours takes them whole by our own message. Of others the standard has no settings:
 * which relay is closed and for how long is said in each OUT, so the driver keeps that, and refuses the rest.
 */
async function applySettings(
  { hwId, settings, settingsVersion }: Rs485Apply,
  device: Device,
  until: Until,
): Promise<Rs485Applied> {
  const { state, session } = device;
  const refusal = refusalOf(settings, state.outputCount() ?? 0, state.isOurs());
  if (refusal !== undefined) throw new DriverError('REFUSED', refusal);
  if (state.isOurs()) {
    const request = { kind: 'writeSettings', settings, settingsVersion } as const;
    const sends = () => void state.settingsSent();
    const asking = { class: 'settings', hwId, ...until } as const;
    const written = askVendor(session, request, 'settings', { ...asking, sends });
    const reported = await written.catch(async (error: unknown) => {
      // It is final where the device itself has said so: another one may have come into its place.
      if (error instanceof DriverError && error.code === 'REFUSED')
        state.madeKnown(await askVendor(session, { kind: 'status' }, 'status', asking));
      throw error;
    });
    if (reported.settingsVersion !== settingsVersion || !isDeepStrictEqual(reported.settings, settings))
      throw new DriverError(
        'BAD_REPLY',
        'the device acknowledged the settings, and shows others: they are written again; where that goes on, restart the device',
      );
    state.madeKnown(reported);
  } else state.keep(settings, settingsVersion);
  device.report();
  return { reportedSettingsVersion: settingsVersion };
}

function refusalOf(settings: Rs485Settings, outputs: number, isOurs: boolean): string | undefined {
  const { relayIndex, useInputPinMemory } = settings;
  if (relayIndex !== null && relayIndex >= outputs)
    return `the device has ${outputs === 0 ? 'no outputs' : `outputs 0 to ${outputs - 1}`}: relayIndex cannot be ${relayIndex}`;
  if (useInputPinMemory && !isOurs)
    return 'the device cannot remember activations of its inputs: useInputPinMemory must be false';
  return undefined;
}
