/**
 * What readers show: a text, a light and beeps for a time, as somebody orders it; and whether a relay was fired. Then the reader does again
 * what it did before.
 */
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import type { ReaderShown, ShowOnReader } from '../contract/osdp.ts';
import type { Until } from '../rs485/link.ts';
import type { Device } from './device.ts';
import { type DeviceState, FUNCTION } from './device-state.ts';
import type { OsdpOptions, Signal } from './options.ts';
import { COLOUR, type Colour, type Command, timerTenths } from './protocol/messages.ts';

type Part = ReaderShown['shown'][number];

/** Annex B.5, B.6: the compliance level from which on a reader ends a light or a sound by itself. */
const TIMED = 2;
/** Annex B.7: rows of 16 characters by compliance level. */
const TEXT_ROWS: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 4 };
const TEXT_COLUMNS = 16;

/** In the order of the parts. What the device cannot do ends it, before that is sent. Throws a DriverError. */
export async function showAtReader(
  { state, session, connected, address }: Pick<Device, 'state' | 'session' | 'connected' | 'address'>,
  wanted: ShowOnReader,
  until: Until,
): Promise<ReaderShown> {
  if (!connected())
    throw new DriverError(
      'DEVICE_OFFLINE',
      `device ${address} does not answer in a session; nothing was sent`,
    );
  const shown: Part[] = [];
  const impossible = whyImpossible(state, wanted);
  if (impossible) return { shown, refused: impossible };
  for (const [part, command] of commandsOf(wanted)) {
    try {
      await session.ask(command, { class: 'settings', hwId: wanted.hwId, ...until });
      shown.push(part);
    } catch (error) {
      if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
      return { shown, refused: { part, reason: error.message } };
    }
  }
  return { shown, refused: null };
}

function whyImpossible(
  state: Pick<DeviceState, 'capability'>,
  { reader, text, led, buzzer }: ShowOnReader,
): ReaderShown['refused'] {
  const can = (code: number) => state.capability(code);
  const readers = can(FUNCTION.readers)?.count ?? 1;
  if (reader >= Math.max(1, readers))
    return { part: 'reader', reason: `the device says that it has readers 0 to ${Math.max(1, readers) - 1}` };
  const [display, lamps, sound] = [can(FUNCTION.text), can(FUNCTION.leds), can(FUNCTION.buzzer)];
  if (text) {
    const rows = TEXT_ROWS[display?.compliance ?? 0];
    if (!display?.count) return { part: 'text', reason: 'the device says that it has no display' };
    if (rows !== undefined && (text.row > rows || text.column + text.text.length - 1 > TEXT_COLUMNS))
      return {
        part: 'text',
        reason: `the device says that it has ${rows} rows of ${TEXT_COLUMNS} characters`,
      };
  }
  if (led) {
    if (led.led >= (lamps?.count ?? 0))
      return { part: 'led', reason: `the device says that it has ${lamps?.count ?? 0} LEDs at each reader` };
    if ((lamps?.compliance ?? 0) < TIMED)
      return { part: 'led', reason: 'the device says that its LEDs take no time: one would stay as it is' };
  }
  if (buzzer) {
    if (!sound?.count) return { part: 'buzzer', reason: 'the device says that it has no buzzer' };
    if (sound.compliance < TIMED)
      return { part: 'buzzer', reason: 'the device says that its buzzer takes no time: it would not end' };
  }
  return null;
}

function commandsOf({ reader, text, led, buzzer }: ShowOnReader): [Part, Command][] {
  const commands: [Part, Command][] = [];
  if (text) commands.push(['text', { kind: 'TEXT', reader, ...text }]);
  if (led) commands.push(['led', lit(reader, led.led, COLOUR[led.colour], led.milliseconds)]);
  if (buzzer) {
    const [on, off] = [timerTenths(buzzer.onMilliseconds), timerTenths(buzzer.offMilliseconds)];
    commands.push(['buzzer', { kind: 'BUZ', reader, tone: 2, on, off, count: buzzer.beeps }]);
  }
  return commands;
}

function lit(reader: number, led: number, colour: Colour, milliseconds: number): Command {
  const blink = { on: 1, off: 0, onColour: colour, offColour: colour };
  const temporary = { ...blink, time: timerTenths(milliseconds) };
  return { kind: 'LED', reader, led, temporary, permanent: null };
}

// Once a relay was fired, or was refused.

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
      for (const command of feedbackOf(feedback[verdict], device))
        await device.session.ask(command, {
          class: 'settings',
          hwId: device.hwId(),
          deadline,
          signal: closing,
        });
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

function feedbackOf({ led, milliseconds, beeps }: Signal, { state }: Device): Command[] {
  const commands: Command[] = [];
  if (led !== 'none' && state.ledCount() > 0) commands.push(lit(READER, LED, COLOUR[led], milliseconds));
  if (beeps > 0 && state.buzzerCount() > 0) {
    const [on, off] = [BEEP_TENTHS, BEEP_TENTHS];
    commands.push({ kind: 'BUZ', reader: READER, tone: 2, on, off, count: beeps });
  }
  return commands;
}
