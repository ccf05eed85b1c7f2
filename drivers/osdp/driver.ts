/**
 * OSDP on an RS-485 bus, as the control panel: the devices of the options and of `watch` are polled, each in its session
 * (protocol/session.ts). The wire is the bus's (drivers/bus/bus.ts).
 */
import { type Bus, openBus } from '../bus/bus.ts';
import { openPort } from '../bus/open-port.ts';
import type { OpenPort } from '../bus/port.ts';
import { tuned } from '../bus/tuning.ts';
import { characterMs } from '../bus/wire.ts';
import {
  type Driver,
  type DriverContext,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../contract/driver.ts';
import { abortFile, readdress, sendFile } from '../contract/osdp.ts';
import { endPulse, type Probe, type Pulse, pair, probe, pulse, trace, watch } from '../contract/rs485.ts';
import { type Rs485Report, rs485Apply } from '../contract/settings.ts';
import { valid } from '../contract/valid.ts';
import { openEventQueue } from '../rs485/event-queue.ts';
import { type Commands, executing, runLink } from '../rs485/link.ts';
import { applySettings } from './apply.ts';
import { openDecrypt } from './decrypt.ts';
import { type Devices, openDevices } from './devices.ts';
import { openFeedback } from './feedback.ts';
import { openFiles } from './files.ts';
import { type OsdpOptions, osdpOptions } from './options.ts';
import { probeAddresses } from './probe.ts';
import { sendersOf } from './protocol/frame.ts';
import { redactKeys } from './redact.ts';

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
    const events = openEventQueue({ emit: context.emit, clock, log });
    // Plain, but for optional keys in its type.
    const tell = (state: Rs485Report) => report({ subject: `device:${state.hwId}`, state: state as Plain });
    const devices = opening.use(openDevices({ clock, log, bus, options, tell, tellEvent: events.add }));
    const parts = { bus, events, context, warnings: devices.warnings, repeat: devices.report };
    const opened = opening.move();
    return {
      run: (runSignal) => runLink(parts, runSignal),
      execute: executing(commandsOf({ options, context, bus, devices }), 'an OSDP link'),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    } satisfies Driver;
  };
}

interface CommandsOptions {
  options: OsdpOptions;
  context: DriverContext;
  bus: Bus;
  devices: Devices;
}

function commandsOf(given: CommandsOptions): Commands {
  const { options, bus, devices, context } = given;
  const { clock } = context;
  const firePulse = openFire(given);
  const files = openFiles({ clock, characterMs: characterMs(options), named: devices.named });
  const ask = (wanted: Probe, deadline: number, signal: AbortSignal) => {
    const { check } = options;
    // With other characters there is no session to keep to.
    const { line } = wanted;
    const among = line
      ? { bus: tuned(bus, line), deviceAt: () => undefined }
      : { bus, deviceAt: devices.deviceAt };
    return probeAddresses(wanted, { ...among, check, deadline, signal, clock, lateness: devices.lateness });
  };
  return {
    async watch({ data }) {
      devices.watch(valid(watch, data, 'INVALID_COMMAND'));
      return null;
    },
    async pair({ data }, signal) {
      return { ...(await devices.pair(valid(pair, data, 'INVALID_COMMAND'), signal)) };
    },
    async probe({ data, deadline }, signal) {
      return await ask(valid(probe, data, 'INVALID_COMMAND'), deadline, signal);
    },
    trace: async ({ data }, signal) => await bus.trace(valid(trace, data, 'INVALID_COMMAND'), signal),
    async applySettings({ data, deadline }, signal) {
      const apply = valid(rs485Apply, data, 'INVALID_COMMAND');
      return await applySettings(apply, devices.named(apply.hwId).device, { deadline, signal });
    },
    async endPulse({ data, deadline }, signal) {
      const { hwId, relay } = valid(endPulse, data, 'INVALID_COMMAND');
      await devices.named(hwId).pulses.end(hwId, relay, { class: 'command', deadline, signal });
      return null;
    },
    async pulse({ data, deadline }, signal) {
      return { ...(await firePulse(valid(pulse, data, 'INVALID_COMMAND'), deadline, signal)) };
    },
    async sendFile({ data }, signal) {
      return { ...(await files.send(valid(sendFile, data, 'INVALID_COMMAND'), signal)) };
    },
    async abortFile({ data, deadline }, signal) {
      await files.abort(valid(abortFile, data, 'INVALID_COMMAND'), deadline, signal);
      return null;
    },
    async readdress({ data, deadline }, signal) {
      const isTaken = async (address: number) => {
        const { results } = await ask({ addresses: [address], repeats: PRESENCE_PROBES }, deadline, signal);
        return results.some(({ counters }) => counters.replies + counters.refusals + counters.collisions > 0);
      };
      const wanted = valid(readdress, data, 'INVALID_COMMAND');
      return { ...(await devices.readdress(wanted, { isTaken, deadline, signal })) };
    },
  };
}

/** Fires, and has the reader show the outcome; the caller does not wait for that. */
function openFire({ options, context, devices }: CommandsOptions) {
  const { clock, log } = context;
  const show = openFeedback({ feedback: options.feedback, clock, log, closing: devices.closing });
  return async (wanted: Pulse, deadline: number, signal: AbortSignal) => {
    const { device, pulses } = devices.named(wanted.hwId);
    const shown = (verdict: 'granted' | 'denied') =>
      void show(device, verdict).catch((error: unknown) =>
        log.error({ err: error }, 'no feedback was given'),
      );
    try {
      const pulsed = await pulses.fire(wanted, deadline, signal);
      shown('granted');
      return pulsed;
    } catch (error) {
      if (error instanceof DriverError && error.code === 'REFUSED') shown('denied');
      throw error;
    }
  };
}
