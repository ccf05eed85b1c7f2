/** Shows a text, a light and beeps at a reader for a time, as somebody orders it; then the reader does again what it did before. */
import { DriverError } from '../contract/driver.ts';
import type { ReaderShown, ShowOnReader } from '../contract/osdp.ts';
import type { Until } from '../rs485/link.ts';
import type { Device } from './device.ts';
import { type DeviceState, FUNCTION } from './device-state.ts';
import { COLOUR, type Command, timerTenths } from './protocol/messages.ts';

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
      await session.ask(command, { class: 'settings', ...until });
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
  if (led) {
    const colour = COLOUR[led.colour];
    const temporary = {
      on: 1,
      off: 0,
      onColour: colour,
      offColour: colour,
      time: timerTenths(led.milliseconds),
    };
    commands.push(['led', { kind: 'LED', reader, led: led.led, temporary, permanent: null }]);
  }
  if (buzzer) {
    const [on, off] = [timerTenths(buzzer.onMilliseconds), timerTenths(buzzer.offMilliseconds)];
    commands.push(['buzzer', { kind: 'BUZ', reader, tone: 2, on, off, count: buzzer.beeps }]);
  }
  return commands;
}
