/** What is reported of a module. */
import { INPUT_PINS, OUTPUT_PINS, type Rs485Carries, type Rs485Report } from '../contract/settings.ts';
import { carriesOf } from '../rs485/carries.ts';
import type { Unfed } from '../rs485/watchdog-feed.ts';
import { proofOf } from '../rs485/watchdog-proof.ts';
import type { Pins } from './messages.ts';
import type { ModuleType } from './module-types.ts';
import type { Known } from './scripts.ts';
import type { ModuleState } from './state.ts';

export interface ModuleView
  extends Pick<ModuleState, 'hwId' | 'address' | 'known' | 'guard' | 'pins' | 'pinsAskedAt' | 'applied'> {
  connected: boolean;
  edges: Record<string, { total: number; at: number }>;
  pulse: NonNullable<Rs485Report['pulse']> | null;
  relayFault: NonNullable<Rs485Report['relayFault']> | null;
  watchdogMs: number;
  unfed: Unfed | null;
}

/** What must have been proved before an output of such a module is switched on; null: it has none to switch. */
export function proofOfModule(
  { product, outputs, watchdog }: ModuleType,
  watchdogMs: number,
): { proof: string; milliseconds: number } | null {
  if (!outputs || !watchdog) return null;
  return {
    proof: proofOf({ product, outputs: { ...outputs }, watchdog, watchdogMs }),
    milliseconds: watchdogMs,
  };
}

/** No module has a serial number. */
function watchdogOf({ known, watchdogMs, unfed }: ModuleView) {
  const watchdog = known?.type ? proofOfModule(known.type, watchdogMs) : null;
  return watchdog && { ...watchdog, isNamedByPlace: true, unfed };
}

export function reportOf(view: ModuleView) {
  const { known, applied } = view;
  return {
    connected: view.connected,
    hwId: view.hwId,
    type: known && (known.type?.product ?? known.name),
    platform: known?.version ? { version: known.version } : null,
    apps: [],
    reportedSettingsVersion: applied?.version ?? 0,
    settings: applied?.settings ?? null,
    levels: known?.type && view.pins ? levelsOf(known.type, view.pins) : {},
    ...(known?.type && view.pins && { readAt: view.pinsAskedAt }),
    address: view.address,
    profile: known?.type?.product ?? null,
    edges: view.edges,
    tamper: null,
    supplyFault: null,
    pulse: view.pulse,
    relayFault: view.relayFault,
    watchdog: watchdogOf(view),
    effectiveUnlockMilliseconds: applied?.settings.unlockDurationMilliseconds ?? null,
    ...(known && { carries: carriedBy(known) }),
    unsupported: unsupportedOf(view),
  } satisfies Rs485Report;
}

function levelsOf(type: ModuleType, pins: Pins): Record<string, boolean> {
  const levels = (names: readonly string[], count: number, bits: number) =>
    names.slice(0, count).map((name, channel) => [name, ((bits >> channel) & 1) === 1]);
  return Object.fromEntries([
    ...levels(INPUT_PINS, type.inputs?.count ?? 0, pins.inputs),
    ...levels(OUTPUT_PINS, type.outputs?.count ?? 0, pins.outputs),
  ]);
}

function carriedBy({ type }: Known): Rs485Carries {
  const outputs = type?.outputs?.count ?? 0;
  // Without a watchdog none is ever fired (module-types.ts).
  const relays = type?.watchdog ? outputs : 0;
  return carriesOf({ inputs: type?.inputs?.count ?? 0, outputs, relays, pinMemory: type?.latch === true });
}

/** Of the settings in force, what this module cannot do; of a module without any, what no settings will bring it to. */
function unsupportedOf({ known, guard, applied }: ModuleView): string[] {
  if (!known) return [];
  const { type } = known;
  const settings = applied?.settings;
  const has = new Set<string>([
    ...INPUT_PINS.slice(0, type?.inputs?.count ?? 0),
    ...OUTPUT_PINS.slice(0, type?.outputs?.count ?? 0),
  ]);
  const pins = Object.entries(settings?.ioPins ?? {}).filter(([pin, inUse]) => inUse && !has.has(pin));
  const relay = guard.kind === 'none' ? ['relayIndex', 'unlockDurationMilliseconds'] : [];
  const memory = type?.latch ? [] : ['useInputPinMemory'];
  return [...pins.map(([pin]) => pin), ...relay, ...memory];
}
