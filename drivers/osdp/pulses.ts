/**
 * Closes a relay for a time, at most once: OUT with code 5, which the device times by itself (6.10). The session keeps it
 * from being done twice; where that is lost, what the device shows in the next one may show what became of it.
 */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError, type DriverErrorCode } from '../contract/driver.ts';
import type { Pulse, Pulsed } from '../contract/rs485.ts';
import type { Rs485Report } from '../contract/settings.ts';
import type { Until } from '../rs485/link.ts';
import { openMutex } from '../rs485/mutex.ts';
import { openPulseEnds, type PulseEnds } from '../rs485/pulse-ends.ts';
import { OtherSettings } from '../rs485/registry.ts';
import { assertAloneInClear, type Device } from './device.ts';
import type { Asking } from './device-session.ts';
import { type DeviceState, effectiveMs } from './device-state.ts';
import { type Command, OUTPUT, timerTenths } from './protocol/messages.ts';
import { askVendor } from './readout.ts';

export interface Pulses {
  /** Throws a DriverError. */
  fire(pulse: Pulse, until: Until): Promise<Pulsed>;
  /** Opens the relay before its pulse is over. Throws a DriverError. */
  end(hwId: string, relay: number, asking: Asking): Promise<void>;
}

/** The pulses of one device. It may come to another address, and another one to its address. */
interface DevicePulses {
  begun: PulseEnds;
  /** Of unknown outcome: each may have closed its relay for so long. */
  uncertain: PulseEnds;
}

/** By hwId. */
export type AllPulses = Map<string, DevicePulses>;

/** After these the device may have carried the pulse out. */
const MAY_BE_CLOSED: readonly DriverErrorCode[] = ['OUTCOME_UNKNOWN', 'BAD_REPLY'];
/** Devices are known that refuse what they have carried out. */
const DECIDED_BY_RELAY: readonly DriverErrorCode[] = ['OUTCOME_UNKNOWN', 'REFUSED'];
/** What is shown of the relay afterwards is worth so much waiting. */
const LOOK_MS = 1_000;

function pulsesOf(all: AllPulses, hwId: string): DevicePulses {
  const pulses = all.get(hwId) ?? { begun: openPulseEnds(), uncertain: openPulseEnds() };
  all.set(hwId, pulses);
  return pulses;
}

/** No pulse that was sent before can be what keeps the relay closed. */
function isFree({ begun, uncertain }: DevicePulses, relay: number, now: number): boolean {
  return [begun, uncertain].every((ends) => ends.endsAt(relay, now) === undefined);
}

/** Of the relay that was closed last, unless the device has shown it open since: after a restart, or by somebody else. */
export function shownPulse(
  all: AllPulses,
  device: Pick<DeviceState, 'hwId' | 'isReadOff'>,
  now: number,
): NonNullable<Rs485Report['pulse']> | null {
  const hwId = device.hwId();
  const last = hwId === undefined ? undefined : all.get(hwId)?.begun.latest();
  if (!last || device.isReadOff(last.relay, last.begunAt)) return null;
  const remainingMilliseconds = Math.ceil(last.endsAt - now);
  return remainingMilliseconds > 0 ? { relay: last.relay, remainingMilliseconds } : null;
}

export interface PulsesOptions {
  bus: Pick<Bus, 'isContested'>;
  device: Device;
  all: AllPulses;
  clock: Clock;
}

export function openPulses({ bus, device, all, clock }: PulsesOptions): Pulses {
  const { session, state } = device;
  const mutex = openMutex();

  async function send({
    hwId,
    relay,
    milliseconds,
    settingsVersion,
    ...until
  }: Pulse & Until): Promise<void> {
    const output = { output: relay, code: OUTPUT.onForTime, time: timerTenths(milliseconds) } as const;
    const command: Command = { kind: 'OUT', outputs: [output] };
    const wasOff = state.outputs()?.[relay] === 0 && isFree(pulsesOf(all, hwId), relay, clock.monotonic());
    const begunAt = clock.monotonic();
    const bootCount = state.bootCount();
    let reply: Awaited<ReturnType<typeof session.ask>>;
    try {
      const sends = () =>
        state.settingsVersion() === settingsVersion ? undefined : new OtherSettings(device.address);
      reply = await session.ask(command, { class: 'command', hwId, sends, ...until });
    } catch (error) {
      if (!(error instanceof DriverError) || error instanceof OtherSettings) throw error;
      if (!DECIDED_BY_RELAY.includes(error.code)) throw error;
      const shown = await look(relay);
      if (shown === 1 && wasOff) return;
      // A pulse that it carried out would still be under way.
      const isNotTaken = shown === 0 && clock.monotonic() - begunAt < milliseconds;
      if (error.code === 'REFUSED') throw isNotTaken ? error : refusedUnseen(shown, error);
      // It cannot be delivered any more: the session that it was sent in is over. A power cut opens a relay too.
      if (isNotTaken && (await isStillStarted(bootCount)))
        throw new DriverError('NO_REPLY', 'the device did not take the pulse: its relay is open', {
          cause: error,
        });
      throw error;
    }
    // Some devices acknowledge, and show what they did only when asked.
    const shown = reply.kind === 'OSTATR' ? reply.outputs[relay] : await look(relay);
    const isOver = reply.kind !== 'OSTATR' && clock.monotonic() - begunAt >= milliseconds;
    if (shown !== 1) throw notShownClosed(shown, isOver);
  }

  function looking(): Asking {
    return { class: 'command', deadline: clock.monotonic() + LOOK_MS, signal: new AbortController().signal };
  }

  /** undefined: the device does not show it. */
  async function look(relay: number): Promise<number | undefined> {
    const reply = await session.ask({ kind: 'OSTAT' }, looking()).catch(() => undefined);
    return reply?.kind === 'OSTATR' ? reply.outputs[relay] : undefined;
  }

  /** The device has not been restarted since. Only devices of ours say so; the standard has nothing for it. */
  async function isStillStarted(bootCount: number | undefined): Promise<boolean> {
    if (bootCount === undefined) return false;
    const reply = await askVendor(session, { kind: 'status' }, 'status', looking()).catch(() => undefined);
    return reply?.status.bootCount === bootCount;
  }

  return {
    end: (hwId, relay, asking) =>
      mutex(async () => {
        assertThere(device, hwId);
        await session.ask(
          { kind: 'OUT', outputs: [{ output: relay, code: OUTPUT.offNow, time: 0 }] },
          asking,
        );
        for (const ends of Object.values(pulsesOf(all, hwId))) ends.end(relay);
        device.report();
      }, asking.signal),
    fire: ({ hwId, relay, milliseconds, settingsVersion }, until) =>
      mutex(async () => {
        assertThere(device, hwId);
        assertAloneInClear(bus, device);
        const relays = state.outputCount() ?? 0;
        if (relay >= relays)
          throw new DriverError('REFUSED', `the device has ${relays} outputs, and no output${relay}`);
        // Never shorter than a pulse under way, as another caller was promised.
        const { begun, uncertain } = pulsesOf(all, hwId);
        const left = () => (begun.endsAt(relay, clock.monotonic()) ?? 0) - clock.monotonic();
        // One whose relay is open is over: the device was restarted.
        if (left() > milliseconds && (await look(relay)) !== 1) begun.end(relay);
        const effective = effectiveMs(Math.max(milliseconds, left()));
        const begin = (ends: PulseEnds) =>
          ends.begin(relay, clock.monotonic() + effective, clock.monotonic());
        try {
          await send({ hwId, relay, milliseconds: effective, settingsVersion, ...until });
        } catch (error) {
          if (error instanceof DriverError && MAY_BE_CLOSED.includes(error.code)) begin(uncertain);
          throw error;
        }
        begin(begun);
        device.report();
        return { relay, milliseconds: effectiveMs(milliseconds), timedBy: 'device' };
      }, until.signal),
  };
}

/** It had its turn late, perhaps. */
function assertThere(device: Device, hwId: string): void {
  if (!device.connected() || device.state.hwId() !== hwId)
    throw new DriverError('DEVICE_OFFLINE', 'the device does not answer; nothing was sent');
}

/** A refusal is believed when the relay was read open: a NAK may follow what was carried out, and in clear anyone can send one. */
function refusedUnseen(shown: number | undefined, cause: DriverError): DriverError {
  const seen = {
    0: 'its relay was read when a pulse would have been over',
    1: 'its relay is closed',
  };
  const what = seen[shown as 0 | 1] ?? 'it does not show its relay';
  return new DriverError('OUTCOME_UNKNOWN', `the device refused it (${cause.message}), and ${what}`, {
    cause,
  });
}

/** After an acknowledgement. `isOver`: the relay was read after the pulse. */
function notShownClosed(shown: number | undefined, isOver: boolean): DriverError {
  if (shown === undefined)
    return new DriverError(
      'OUTCOME_UNKNOWN',
      'the device acknowledged the pulse, and does not show its relay',
    );
  if (isOver) return new DriverError('OUTCOME_UNKNOWN', 'the pulse was over when its relay was read');
  return new DriverError('BAD_REPLY', 'the device acknowledged the pulse, but its relay is open');
}
