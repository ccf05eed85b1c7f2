/** Where the fields of a product are: all of them, and those of each purpose. */
import type { Profile, Watchdog } from './profile-shape.ts';
import {
  type BitsPlace,
  isBitTable,
  type NumberPlace,
  type NumbersPlace,
  type Span,
  spanOf,
  type TextPlace,
} from './registers.ts';

export interface Area extends Span {
  /** In the profile. */
  path: PropertyKey[];
  /** Of the one register; absent: all of them, or coils. */
  bits?: { from: number; to: number };
}

export function areasOf(profile: Profile): Area[] {
  const { inputs, outputs, inputEdges, inputCounters, bootCount, tamper, supplyFault } = profile;
  return [
    ...labelAreas(profile.identity),
    ...(profile.identity.shown ?? []).flatMap((place, index) =>
      numberArea(['identity', 'shown', index], place),
    ),
    ...bitArea(['inputs'], inputs),
    ...bitArea(['outputs'], outputs),
    ...bitArea(['inputEdges'], inputEdges),
    ...numberArea(['inputCounters'], inputCounters),
    ...numberArea(['bootCount'], bootCount),
    ...bitArea(['tamper'], tamper && { ...tamper, count: 1 }),
    ...bitArea(['supplyFault'], supplyFault && { ...supplyFault, count: 1 }),
    ...settingsAreas(profile),
    ...pulseAreas(profile),
  ];
}

function labelAreas({ hwId, type, platformVersion, apps }: Profile['identity']): Area[] {
  return [
    ...numberArea(['identity', 'hwId'], hwId),
    ...numberArea(['identity', 'type'], type),
    ...numberArea(['identity', 'platformVersion'], platformVersion),
    ...apps.flatMap(({ name, version }, index) => [
      ...numberArea(['identity', 'apps', index, 'name'], name),
      ...numberArea(['identity', 'apps', index, 'version'], version),
    ]),
  ];
}

function settingsAreas({ settings, inputs, outputs }: Profile): Area[] {
  if (!settings) return [];
  const holding = { table: 'holding', count: 1 } as const;
  const { inputsInUse, outputsInUse, useInputPinMemory } = settings;
  const at = (name: keyof typeof settings) => ['settings', name];
  return [
    ...numberArea(at('inForce'), settings.inForce),
    ...numberArea(at('version'), settings.version),
    ...bitArea(at('inputsInUse'), inputsInUse && { ...holding, ...inputsInUse, count: inputs?.count ?? 1 }),
    ...bitArea(
      at('outputsInUse'),
      outputsInUse && { ...holding, ...outputsInUse, count: outputs?.count ?? 1 },
    ),
    ...numberArea(at('relayIndex'), settings.relayIndex),
    ...numberArea(at('unlockDurationMilliseconds'), settings.unlockDurationMilliseconds),
    ...bitArea(at('useInputPinMemory'), useInputPinMemory && { ...holding, ...useInputPinMemory }),
  ];
}

function pulseAreas({ pulse, outputs }: Profile): Area[] {
  const at = (...names: string[]) => ['pulse', ...names];
  switch (pulse?.way) {
    case 'block':
      return [
        ...numberArea(at('id'), pulse.id),
        ...numberArea(at('relay'), pulse.relay),
        ...numberArea(at('milliseconds'), pulse.milliseconds),
        ...numberArea(at('lastId'), pulse.lastId),
        ...numberArea(at('remaining'), pulse.remaining),
      ];
    case 'flash':
      return [{ path: at('address'), table: 'coil', address: pulse.address, quantity: outputs?.count ?? 1 }];
    case 'switched':
      return watchdogAreas(pulse.watchdog);
    default:
      return [];
  }
}

/**
 * Steps may share addresses with each other and with `inForce`: each address is an area once.
 */
function watchdogAreas({ release, time, enable, inForce, feed }: Watchdog): Area[] {
  const at = (...names: PropertyKey[]) => ['pulse', 'watchdog', ...names];
  const areas: Area[] = [
    { path: at('time'), table: 'holding', address: time.address, quantity: 1 },
    ...[...release.entries()].map(([index, step]) => ({ path: at('release', index), ...stepSpan(step) })),
    ...[...enable.entries()].map(([index, step]) => ({ path: at('enable', index), ...stepSpan(step) })),
    ...[...inForce.entries()].map(([index, { table, address }]) => ({
      path: at('inForce', index),
      table,
      address,
      quantity: 1,
    })),
    ...(feed ? [{ path: at('feed'), table: 'holding' as const, address: feed.address, quantity: 1 }] : []),
  ];
  return areas.filter(
    ({ table, address, quantity }, index) =>
      !areas
        .slice(0, index)
        .some(
          (earlier) =>
            earlier.table === table &&
            earlier.address <= address &&
            address + quantity <= earlier.address + earlier.quantity,
        ),
  );
}

const stepSpan = ({ table, address, count }: Watchdog['enable'][number]) => ({
  table,
  address,
  quantity: count,
});

/** What shows that the watchdog is in force. */
export function watchdogSpans({ time, inForce }: Watchdog): Span[] {
  return [
    { table: 'holding', address: time.address, quantity: 1 },
    ...inForce.map(({ table, address }) => ({ table, address, quantity: 1 })),
  ];
}

/** What says who a device is. */
export function identitySpans({ identity }: Profile): Span[] {
  return labelAreas(identity);
}

/** What names the product. */
export function productSpans({ identity }: Profile): Span[] {
  return (identity.shown ?? []).map(spanOf);
}

/** What is read again and again. */
export function pollSpans(profile: Profile): Span[] {
  const { inputs, outputs, inputEdges, inputCounters, bootCount, tamper, supplyFault, settings, pulse } =
    profile;
  const status = pulse?.way === 'block' ? [pulse.lastId, pulse.remaining] : [];
  const numbers = [bootCount, settings?.inForce, ...status].filter((place) => place !== undefined);
  const bits = [inputs, outputs, inputEdges, inputCounters].filter((place) => place !== undefined);
  const flags = [tamper, supplyFault].filter((place) => place !== undefined);
  return [...numbers.map(spanOf), ...bits.map(spanOf), ...flags.map((flag) => spanOf({ ...flag, count: 1 }))];
}

function numberArea(path: PropertyKey[], place: NumberPlace | NumbersPlace | TextPlace | undefined): Area[] {
  return place ? [{ path, ...spanOf(place) }] : [];
}

function bitArea(path: PropertyKey[], place: BitsPlace | undefined): Area[] {
  if (!place) return [];
  const { table, bit, count, width = 1, each } = place;
  if (each && !isBitTable(table)) return [{ path, ...spanOf(place) }];
  // A coil has no bits: whatever `bit` says is then wrong.
  const bits = isBitTable(table) ? { from: bit, to: bit + 1 } : { from: bit, to: bit + count * width };
  return [{ path, ...spanOf(place), bits }];
}
