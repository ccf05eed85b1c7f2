/** What the readers of a device show and sound once its relay was fired, or was refused. */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { Device } from './device.ts';
import type { OsdpOptions, Signal } from './options.ts';
import { COLOUR, type Command, timerTenths } from './protocol/messages.ts';

/** Later it would confuse the person at the door. */
const DEADLINE_MS = 1_500;
const BEEP_TENTHS = 1;
const READER = 0;
const LED = 0;

type Verdict = 'granted' | 'denied';

/** Resolves when it is shown, or was not in time. Of what comes meanwhile only the latest is shown. */
export function openFeedback(
  feedback: OsdpOptions['feedback'],
  clock: Clock,
  log: DriverLog,
  closing: AbortSignal,
) {
  /** Devices that show something, each with what comes next. */
  const busy = new Map<Device, Verdict | undefined>();

  async function show(device: Device, verdict: Verdict): Promise<void> {
    const deadline = clock.monotonic() + DEADLINE_MS;
    try {
      for (const command of commandsOf(feedback[verdict], device))
        await device.session.ask(command, { class: 'settings', deadline, signal: closing });
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      log.debug({ address: device.address, verdict, code: error.code }, 'a reader did not show it');
    }
  }

  return async (device: Device, verdict: Verdict): Promise<void> => {
    if (busy.has(device)) {
      busy.set(device, verdict);
      return;
    }
    try {
      for (let next: Verdict | undefined = verdict; next && device.connected(); next = busy.get(device)) {
        busy.set(device, undefined);
        await show(device, next);
      }
    } finally {
      busy.delete(device);
    }
  };
}

function commandsOf({ led, milliseconds, beeps }: Signal, { state }: Device): Command[] {
  const commands: Command[] = [];
  if (led !== 'none' && state.ledCount() > 0) {
    const blink = { on: 1, off: 0, onColour: COLOUR[led], offColour: COLOUR[led] };
    const temporary = { ...blink, time: timerTenths(milliseconds) };
    commands.push({ kind: 'LED', reader: READER, led: LED, temporary, permanent: null });
  }
  if (beeps > 0 && state.buzzerCount() > 0)
    commands.push({
      kind: 'BUZ',
      reader: READER,
      tone: 2,
      on: BEEP_TENTHS,
      off: BEEP_TENTHS,
      count: beeps,
    });
  return commands;
}
