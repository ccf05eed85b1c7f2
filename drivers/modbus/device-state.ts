/** What is known of one device, and the report of it. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../contract/driver.ts';
import { INPUT_PINS, OUTPUT_PINS, type Rs485Report, type Rs485Settings } from '../contract/settings.ts';
import { areSame, unsupportedOf } from '../rs485/carries.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { PRODUCT_CODE, REVISION } from './contact-steps.ts';
import type { LivePulses } from './live-pulses.ts';
import { flagAt, openObservations } from './observations.ts';
import type { Profile } from './profile-shape.ts';
import {
  bitsAt,
  blockOf,
  carriedBy,
  EMPTY_IMAGE,
  effectiveMs,
  type Image,
  isWithin,
  registersIn,
  type Span,
  settingsIn,
  spanOf,
  textAt,
  versionIn,
  withRead,
} from './registers.ts';
import type { ShownVersions } from './shown-versions.ts';
import { proofOfProfile, type WatchdogGuard } from './watchdog-guard.ts';

export interface StateOptions {
  profile: Profile;
  clock: Clock;
  addEvent(event: DeviceEvent): void;
  unit: number;
  linkId: string;
  pulses: LivePulses;
  relayFault(): Rs485Report['relayFault'];
  guard: Pick<WatchdogGuard, 'unfed'>;
  versions: ShownVersions;
  reportState(report: Rs485Report): void;
}

/** Settings as they were put in force through this driver. */
interface Applied {
  settings: Rs485Settings;
  version: number;
  /** While the device shows these, its settings are those. undefined: the driver keeps them. */
  registers: readonly number[] | undefined;
}

export interface DeviceState {
  /** What function 43 answered: objects by their id. */
  identified(objects: ReadonlyMap<number, string>): void;
  hwId(): string | undefined;
  image(): Image;
  /** In force; null: not known. */
  settings(): Rs485Settings | null;
  /** Of the settings in force; undefined: settings were sent since it was read, to any device of the link. */
  version(): number | undefined;
  /** `askedAt`: monotonic, when this was asked for at the earliest. */
  take(span: Span, values: readonly (number | boolean)[], askedAt: number): void;
  /** The name that the device gives now; undefined when it gives none though it should. By its place where it has none. */
  identify(): string | undefined;
  /** When it was asked for what shows that it is still this one (openNaming). */
  namedAt(): number;
  /** A reply was missed: another one may be in its place. */
  doubt(): void;
  /** Its name is to be read before anything else. */
  isDoubted(): boolean;
  /** It is this one from now on; another one in its place is gone. */
  adopt(hwId: string): void;
  /** What is read from now on follows nothing that was read before. */
  forget(): void;
  /** `restart`: by a restart alone. */
  hasChanged(by?: 'restart'): boolean;
  /** Its inputs are others than in the poll before, and nothing in the poll says that they are its own. */
  areInputsDoubtful(): boolean;
  /** Takes the readings of a whole poll as they are. */
  settle(): void;
  applied(applied: Applied): void;
  /** Only when something is new, unless `again`. */
  report(connected: boolean, again?: boolean): void;
}

export function openState(options: StateOptions): DeviceState {
  const { profile, reportState, pulses, guard } = options;
  const observations = openObservations(options);
  const required = proofOfProfile(profile);
  const watchdog = required && { ...required, isNamedByPlace: profile.identity.hwId === undefined };
  const pins = openPinTimes(profile);
  const { taken, ...naming } = openNaming(options, () => applied?.version ?? 0);
  let image = EMPTY_IMAGE;
  /** As it was when all of it was of the device of this name: another one may be in its place since. */
  let own = EMPTY_IMAGE;
  let name: string | undefined;
  let applied: Applied | undefined;
  const standard = openObjects();
  let reported: Rs485Report | undefined;
  /** When the inputs were asked for that the last whole poll has shown, though it brought nothing new. */
  let settledAt: number | null = null;
  /** What was settled, and what was reported, was made of this: most polls bring nothing else. */
  let settled: readonly unknown[] = [];
  let reportedOf: readonly unknown[] = [];

  const report = (hwId: string, connected: boolean) =>
    reportOf(options, {
      hwId,
      connected,
      image: connected ? image : own,
      applied,
      objects: standard.all(),
      edges: observations.edges(),
      watchdog,
    });

  function settle(): void {
    if (name === undefined) return;
    const now = [image, applied];
    own = image;
    const isTaken =
      areSame(now, settled) ||
      observations.settle(name, image, settingsNow(image, profile, applied), settledAt);
    settled = isTaken ? now : [];
    if (isTaken) settledAt = pins.readAt() ?? null;
  }

  function forget(): void {
    [applied, settled] = [undefined, []];
    observations.forget();
  }

  return {
    identified: standard.add,
    hwId: () => name,
    image: () => image,
    settings: () => settingsNow(image, profile, applied),
    take(span, values, askedAt) {
      pins.read(span, askedAt);
      image = withRead(image, span, values);
      taken(span, image, { askedAt, isSame: () => nameIn(image, options) === name });
    },
    identify: () => nameIn(image, options),
    ...naming,
    adopt(hwId) {
      if (name !== undefined && name !== hwId) forget();
      name = hwId;
    },
    forget,
    hasChanged: (by) => observations.hasChanged(image, by),
    areInputsDoubtful: () => naming.isShared() && observations.haveInputsChanged(image),
    settle,
    applied(now) {
      applied = now;
      const block = blockOf(profile);
      if (!block || !now.registers) return;
      image = withRead(image, block, now.registers);
      settle();
    },
    report(connected, again = false) {
      if (name === undefined) return;
      const shown = [observations.edges(), pulses.shown(image), options.relayFault(), guard.unfed()];
      const now = [name, connected, image, applied, standard.all(), ...shown];
      const state = reported && areSame(now, reportedOf) ? reported : report(name, connected);
      reportedOf = now;
      if (!again && (state === reported || isDeepStrictEqual(state, reported))) return;
      reported = state;
      const readAt = connected ? pins.readAt() : undefined;
      reportState(readAt === undefined ? state : { ...state, readAt });
    },
  };
}

interface Known {
  hwId: string;
  connected: boolean;
  image: Image;
  applied: Applied | undefined;
  objects: ReadonlyMap<number, string>;
  edges: Rs485Report['edges'];
  watchdog: Rs485Report['watchdog'];
}

function reportOf(options: StateOptions, known: Known): Rs485Report {
  const { unit, profile } = options;
  const { hwId, connected, image, applied, watchdog } = known;
  const settings = settingsNow(image, profile, applied);
  return {
    connected,
    hwId,
    address: unit,
    ...factsOf(image, profile, known.objects),
    // As soon as it falls silent: they are read before it is connected again.
    levels: connected ? levelsIn(image, profile) : {},
    reportedSettingsVersion: versionIn(image, profile) ?? applied?.version ?? 0,
    settings,
    edges: known.edges,
    pulse: connected ? options.pulses.shown(image) : null,
    watchdog: watchdog && { ...watchdog, unfed: options.guard.unfed() },
    relayFault: options.relayFault(),
    effectiveUnlockMilliseconds: effectiveUnlock(profile, settings),
  };
}

function nameIn(image: Image, { profile, linkId, unit }: StateOptions): string | undefined {
  const { hwId } = profile.identity;
  return hwId ? textAt(image, hwId) || undefined : `${linkId}-${unit}`;
}

function openObjects() {
  let objects: ReadonlyMap<number, string> = new Map();
  return {
    all: () => objects,
    add(more: ReadonlyMap<number, string>): void {
      objects = new Map([...objects, ...more]);
    },
  };
}

/** When inputs and outputs were asked for whose levels are shown. */
function openPinTimes({ inputs, outputs }: Profile) {
  const places = [inputs, outputs].filter((place) => place !== undefined).map(spanOf);
  const times = new Map<Span, number>();
  return {
    read(span: Span, askedAt: number): void {
      for (const place of places) if (isWithin(place, span)) times.set(place, askedAt);
    },
    /** Of the older ones of both; undefined: some were not read yet. */
    readAt: () => (times.size > 0 && times.size === places.length ? Math.min(...times.values()) : undefined),
  };
}

/** null: the driver keeps them and was not given any. */
function settingsNow(image: Image, profile: Profile, applied: Applied | undefined): Rs485Settings | null {
  const block = blockOf(profile);
  if (!block) return applied?.settings ?? null;
  const registers = registersIn(image, block);
  // null stands for what the device has, which registers cannot say.
  const isApplied = applied?.registers?.every((value, index) => value === registers?.[index]);
  return (isApplied ? applied?.settings : settingsIn(image, profile)) ?? null;
}

function effectiveUnlock(profile: Profile, settings: Rs485Settings | null): number | null {
  const unlock = settings?.unlockDurationMilliseconds ?? null;
  return unlock === null ? null : effectiveMs(profile, unlock);
}

/** What the device says of itself. */
function factsOf(image: Image, profile: Profile, objects: ReadonlyMap<number, string>) {
  const { type, platformVersion, apps } = profile.identity;
  const text = (label: typeof type) => (label && textAt(image, label)) || null;
  const platform = text(platformVersion) ?? objects.get(REVISION) ?? null;
  const carries = carriedBy(profile);
  return {
    profile: profile.name,
    type: text(type) ?? objects.get(PRODUCT_CODE) ?? profile.product,
    platform: platform === null ? null : { version: platform },
    apps: apps.flatMap(({ name, version }) => {
      const app = text(name);
      return app === null ? [] : [{ name: app, version: text(version) ?? '' }];
    }),
    tamper: flagAt(image, profile.tamper) ?? null,
    supplyFault: flagAt(image, profile.supplyFault) ?? null,
    carries,
    unsupported: unsupportedOf(carries),
  };
}

function levelsIn(image: Image, { inputs, outputs }: Profile): Rs485Report['levels'] {
  const of = (names: readonly string[], place: Profile['inputs']) =>
    ((place && bitsAt(image, place)) ?? []).map((level, index) => [names[index], level === 1]);
  return Object.fromEntries([...of(INPUT_PINS, inputs), ...of(OUTPUT_PINS, outputs)]);
}

// When the device at an address has shown last which one it is: by its name; or, in a poll that follows half a second later at most, by the
// version of its settings, where no other device of the link has that one. So a device that is polled is not asked for its name before
// each order, and one that takes its place is noticed by the next poll.

/** No request to a relay says a name. So long after the device at its address has shown its own, no other one can be in its place. */
export const NAMED_FOR_MS = 500;

interface Naming {
  /** Monotonic; -Infinity: it has not, or it has no name. */
  namedAt(): number;
  /** `image`: with what was read. `isSame`: the name in it is as before. */
  taken(span: Span, image: Image, { askedAt, isSame }: { askedAt: number; isSame(): boolean }): void;
  /** A reply was missed. */
  doubt(): void;
  /** Another one may be there, as a missed reply or its version shows: its name is to be read. */
  isDoubted(): boolean;
  /** Of the settings in force; undefined: settings were sent since it was read, to any device of the link. */
  version(): number | undefined;
  /** Its version is that of another device as well, or may be. Not said of 0, which a device has from the factory. */
  isShared(): boolean;
}

/** `kept`: the version of the settings that the driver keeps, for a product that has none. */
function openNaming({ profile, unit, versions }: StateOptions, kept: () => number): Naming {
  const { identity, settings } = profile;
  const name = identity.hwId && spanOf(identity.hwId);
  const inForce = settings && spanOf(settings.inForce);
  let namedAt = Number.NEGATIVE_INFINITY;
  /**
   * Of its settings, as it was read before its name. When it is read again after the name, it belongs to that name, also if devices
   * changed places in between.
   */
  let version: number | undefined;
  let isDoubted = false;
  let shown: number | undefined;

  function doubt(): void {
    isDoubted = name !== undefined;
    namedAt = Number.NEGATIVE_INFINITY;
    version = undefined;
  }

  return {
    namedAt: () => namedAt,
    doubt,
    isDoubted: () => isDoubted,
    version: () => (settings ? versions.of(unit) : kept()),
    isShared: () => shown !== undefined && shown !== 0 && versions.isShared(unit),
    taken(span, image, { askedAt, isSame }) {
      shown = versionIn(image, profile);
      if (name && isWithin(name, span)) {
        isDoubted = false;
        if (!isSame()) return doubt();
        namedAt = Math.max(namedAt, askedAt);
        version = shown;
      }
      if (!inForce || !isWithin(inForce, span) || shown === undefined) return;
      versions.read(unit, shown, askedAt);
      if (shown !== version) return doubt();
      const mayFollow = askedAt - namedAt <= NAMED_FOR_MS;
      // 0: as it came from the factory.
      if (shown && mayFollow && !versions.isShared(unit)) namedAt = Math.max(namedAt, askedAt);
    },
  };
}
