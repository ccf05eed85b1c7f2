/**
 * What a technician should mend at a bus that works: a code with what it is about, for programs and for pages in other
 * languages, and the same as a sentence in English.
 */
import { z } from 'zod';

/** By code. Exported for the tests of other languages. */
export const BUS_WARNING_TEXTS = {
  LATENCY_TIMER: 'the adapter holds back each reply for up to {timerMs} ms: write {goodMs} to {file}',
  SECOND_CONNECTION: 'a second connection from {from} was refused: the bus has one, and it is in use',
  PEER_REFUSED: '{from} dialled in and was refused: allowedPeer is {allowedPeer}',
  EARLY_REPLIES: 'replies come sooner than the baud rate allows: the port has no wire, or an echo',
  BAUD_RATES_SCANNED:
    'a scan tries other baud rates: devices are read less often, and relays may fire later, until it ends',
  NOTHING_HEARD:
    'nothing is heard on this bus, though its devices are asked: they are without power or have another baud rate or parity (gatehouse bus scan --detect), the cable is broken, or the adapter does not send what it is given (flow control)',
  ECHO: 'the adapter hears what it sends: switch its echo off, or set localEcho to true',
  LATE_REPLIES:
    'replies came too late, after up to {longestMs} ms where turnaroundMaxMs is {turnaroundMaxMs}: raise it, or look for a delay setting in the device or the device server; at address {addresses}',
  UNASKED_REPLIES:
    '{count} replies answer no request, or one that was answered before: the gateway repeats replies, or gives its clients those of others',
  ADDRESS_TWICE_SUSPECTED:
    'address {address}: what is heard there is damaged or comes twice, and not so elsewhere: two devices probably have this address. Disconnect one and give it another address; else look at the branch of the cable',
  ADDRESS_TWICE:
    'two devices answer at address {address}: disconnect one, give the other one another address (gatehouse osdp pair, osdp set), and connect it again.',
  ADDRESS_UNREADABLE:
    'what answers at address {address} cannot be read: two devices may have this address (disconnect one of them), or the wires are bad.',
  NAME_TWICE: 'another device answers as {hwId} too, besides the one at address {address}',
  NO_NAME: 'the device at address {address} gives no name where profile {profile} has it: compare the two',
  PROFILE_REFUSED: 'the device at address {address} does not answer what profile {profile} asks: {reason}',
  NO_KEY: 'the device at address {address} ({hwId}) has no key: pair it (gatehouse osdp pair)',
  DEVICE_ALARM: 'the device at address {address}: {alarms}',
  UNPROVEN_DEVICE:
    'the device at address {address}: {alarms}; if it was swapped or reset, pair it (gatehouse osdp pair)',
  WATCHDOG_UNFED:
    'the watchdog of {device} runs out after {timeoutMs} ms and was not fed in time ({pausedMs} ms): the gateway was held up, or the bus is too slow. Remove devices that are absent, poll fewer on this bus, or raise its baud rate',
  WATCHDOG_TIME:
    'the watchdog of {device} does not take its time of {timeoutMs} ms: no relay is closed without it',
  WATCHDOG_NOT_IN_FORCE:
    'the watchdog of {device} is not in force ({place} shows {value}): no relay is closed without it',
  OUTPUT_STAYS_ON: '{output} of {device} does not go off',
  PULSE_AT_SET_UP: 'a pulse of {device} began while its watchdog was set up',
  OTHER_PRODUCT:
    'the device at address {address} is no {product}: {register} shows {value}, where profile {profile} has {wanted}. Nothing was written to it',
  MODULE_NOT_HEARD: 'module {address} has not answered yet',
  MODULE_UNKNOWN:
    'module {address} calls itself {name}, which is not in the table of modules, nor in a file of the site (moduleTypes)',
  MODULE_WITHOUT_OUTPUTS: 'module {address} ({product}) has no outputs',
  MODULE_WITHOUT_WATCHDOG:
    'module {address} ({product}) has no watchdog: no one would switch its outputs off if the gateway died',
  MODULE_WATCHDOG_REFUSED: 'module {address} ({product}) does not arm its watchdog: {reason}',
} as const;

export type BusWarningCode = keyof typeof BUS_WARNING_TEXTS;

const CODES = Object.keys(BUS_WARNING_TEXTS) as [BusWarningCode, ...BusWarningCode[]];
const MESSAGE_MAX = 512;

export const busWarningSchema = z.object({
  code: z.enum(CODES),
  message: z.string().max(MESSAGE_MAX),
  parameters: z.record(z.string(), z.union([z.string().max(MESSAGE_MAX), z.number()])),
});
export type BusWarning = z.infer<typeof busWarningSchema>;

/** Names of what stands in braces. */
export type NamesIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

export function busWarning<Code extends BusWarningCode>(
  code: Code,
  parameters: Record<NamesIn<(typeof BUS_WARNING_TEXTS)[Code]>, string | number>,
): BusWarning {
  const values: Record<string, string | number> = Object.fromEntries(
    Object.entries<string | number>(parameters).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.slice(0, MESSAGE_MAX) : value,
    ]),
  );
  const message = filled(BUS_WARNING_TEXTS[code], values);
  return { code, message: message.slice(0, MESSAGE_MAX), parameters: values };
}

export function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
}
