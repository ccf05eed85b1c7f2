/**
 * Closes a relay for a time, at most once: OUT with code 5, which the device times by itself (6.10). The session keeps it
 * from being done twice; where that is lost, what the device shows in the next one may tell what became of it.
 */

import { type Clock, DriverError } from '../driver.ts';
import { openMutex } from '../rs485/mutex.ts';
import type { Pulse, Pulsed } from '../rs485.ts';
import type { Rs485Report } from '../settings.ts';
import type { Device } from './device.ts';
import { effectiveMs } from './device-state.ts';
import { type Command, OUTPUT, timerTenths } from './protocol/messages.ts';

export interface Pulses {
  /** Throws a DriverError. */
  fire(pulse: Pulse, deadline: number, signal: AbortSignal): Promise<Pulsed>;
  shown(): NonNullable<Rs485Report['pulse']> | null;
}

interface Attempt {
  relay: number;
  milliseconds: number;
  deadline: number;
  signal: AbortSignal;
}

/** What is shown of the relay afterwards is worth so much waiting. */
const LOOK_MS = 1_000;

export function openPulses(device: () => Device, clock: Clock): Pulses {
  const ends = new Map<number, number>();
  const mutex = openMutex();
  let last: number | undefined;

  const leftOf = (relay: number) => Math.max(0, (ends.get(relay) ?? 0) - clock.monotonic());

  async function send({ relay, milliseconds, deadline, signal }: Attempt): Promise<void> {
    const { talk, state } = device();
    const output = { output: relay, code: OUTPUT.onForTime, time: timerTenths(milliseconds) } as const;
    const command: Command = { kind: 'OUT', outputs: [output] };
    const wasOff = state.outputs()?.[relay] === 0 && leftOf(relay) === 0;
    const begunAt = clock.monotonic();
    try {
      const reply = await talk.ask(command, { class: 'command', deadline, signal });
      // Some devices acknowledge, and show what they did only when asked.
      const shown = reply.kind === 'OSTATR' ? reply.outputs[relay] : await look(relay);
      const isStillDue = clock.monotonic() - begunAt < milliseconds;
      if (shown === 0 && (reply.kind === 'OSTATR' || isStillDue))
        throw new DriverError('BAD_REPLY', 'the device acknowledged the pulse, but its relay is open');
    } catch (error) {
      if (!(error instanceof DriverError) || error.code !== 'OUTCOME_UNKNOWN') throw error;
      const shown = await look(relay);
      if (shown === 1 && wasOff) return;
      // Nobody can deliver it any more: the session it was said in is over.
      if (shown === 0 && clock.monotonic() - begunAt < milliseconds)
        throw new DriverError('NO_REPLY', 'the device did not take the pulse: its relay is open', {
          cause: error,
        });
      throw error;
    }
  }

  /** undefined: it does not tell. */
  async function look(relay: number): Promise<number | undefined> {
    const { signal } = new AbortController();
    const asking = { class: 'command', deadline: clock.monotonic() + LOOK_MS, signal } as const;
    const reply = await device()
      .talk.ask({ kind: 'OSTAT' }, asking)
      .catch(() => undefined);
    return reply?.kind === 'OSTATR' ? reply.outputs[relay] : undefined;
  }

  return {
    fire: ({ relay, milliseconds }, deadline, signal) =>
      mutex(async () => {
        const relays = device().state.outputCount() ?? 0;
        if (relay >= relays)
          throw new DriverError('INVALID_COMMAND', `the device has ${relays} outputs, and no output${relay}`);
        if (!device().connected())
          throw new DriverError('DEVICE_OFFLINE', 'the device does not answer; nothing was sent');
        // Never shorter than a pulse under way, as another caller was promised.
        const effective = effectiveMs(Math.max(milliseconds, leftOf(relay)));
        await send({ relay, milliseconds: effective, deadline, signal });
        ends.set(relay, clock.monotonic() + effective);
        last = relay;
        device().report();
        return { relay, milliseconds: effectiveMs(milliseconds), timedBy: 'device' };
      }, signal),
    shown() {
      const remainingMilliseconds = last === undefined ? 0 : Math.ceil(leftOf(last));
      return last !== undefined && remainingMilliseconds > 0 ? { relay: last, remainingMilliseconds } : null;
    },
  };
}
