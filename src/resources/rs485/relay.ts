/** The relay of a device, by the settings that it has in force. */
import { OUTPUT_PINS, type Rs485Report, type Rs485Settings } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Rs485Row } from './table.ts';
import { settingsOf } from './wanted.ts';

/** By the settings the device has, not by those it may get. Throws NO_RELAY. */
export function settingsInForce(
  row: Rs485Row,
  report: Rs485Report | undefined,
  inForce: boolean,
): Rs485Settings & { relayIndex: number } {
  const settings = report?.settings ?? (inForce ? settingsOf(row) : undefined);
  if (!settings) throw noRelay('The device has not taken its settings yet: its state says why.');
  const { relayIndex } = settings;
  if (relayIndex !== null) return { ...settings, relayIndex };
  throw noRelay(
    inForce
      ? 'The device drives no relay: set relayIndex first.'
      : 'The device has no relay in force yet, but settings are on their way: its state says how far.',
  );
}

export function relayInForce(row: Rs485Row, report: Rs485Report | undefined, inForce: boolean): number {
  return settingsInForce(row, report, inForce).relayIndex;
}

/** The relay in force, and whether the device reports it as closed; undefined: it does not report that. */
export function shownRelay(
  row: Rs485Row,
  report: Rs485Report,
  inForce: boolean,
): { relayIndex: number; isClosed: boolean } | undefined {
  const relayIndex = (report.settings ?? (inForce ? settingsOf(row) : undefined))?.relayIndex ?? -1;
  const pin = OUTPUT_PINS[relayIndex];
  const isClosed = pin && report.connected ? report.levels[pin] : undefined;
  return isClosed === undefined ? undefined : { relayIndex, isClosed };
}

export function noRelay(message: string): GatehouseError {
  return new GatehouseError('NO_RELAY', message);
}
