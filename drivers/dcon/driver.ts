/**
 * DCON, the ASCII protocol of Advantech ADAM-4000 and ADAM-4100 and of ICP DAS I-7000 modules (module-types.ts).
 *
 * Modules have no serial number: their address names them. They keep no settings: those are kept here, and given again
 * when this starts. They do not time a pulse: outputs.ts does, while their watchdog looks after it.
 *
 * To read in this order. A module: modules.ts → module.ts → state.ts → polling.ts → inputs.ts → report.ts. Its outputs:
 * outputs.ts → switch-off.ts → watchdog-test.ts → scripts.ts (questions, step by step) → script-runner.ts → drivers/bus/reply-confirmation.ts →
 * live-pulses.ts. Which modules there are: module-types.ts. The bytes: messages.ts → wire.ts → frame.ts. Addresses that are asked: probe.ts.
 */

import { z } from 'zod';
import { openBus, openPort } from '../bus/bus.ts';
import { whenAsked } from '../bus/exchange.ts';
import { characterMs } from '../bus/options.ts';
import type { OpenPort } from '../bus/port.ts';
import {
  type Driver,
  type DriverContext,
  DriverError,
  type OpenDriver,
  type Plain,
} from '../contract/driver.ts';
import { valid } from '../contract/valid.ts';
import { openDeadline } from '../contract/waiting.ts';
import { openEventQueue } from '../rs485/event-queue.ts';
import { type Commands, commonCommands, executing, type LinkParts, runLink } from '../rs485/link.ts';
import { openMutex } from '../rs485/mutex.ts';
import { RUN_OUT_SHARE } from '../rs485/watchdog-feed.ts';
import { underTest } from '../rs485/watchdog-proof.ts';
import { aa } from './messages.ts';
import { type Module, type ModuleLink, openModule } from './module.ts';
import { moduleTypeSchema, moduleTypesWith } from './module-types.ts';
import { type Modules, openModules } from './modules.ts';
import { dconOptions } from './options.ts';
import { probeAddress } from './probe.ts';
import { hostOkExchange } from './wire.ts';

/** Addresses of a bus. */
const MODULES_MAX = 256;
/** The watchdogs bear two lost broadcasts. */
const FEEDS_PER_WATCHDOG = 3;
/** Withheld, they are looked at again so soon: an output is off within a few exchanges. */
const WITHHELD_MS = 100;
const WITHHELD = new DriverError('BUSY', 'an output is to be switched off first');
/** Ending the pulses, when the driver is stopped. */
const FAREWELL_MS = 1_000;

export const openDcon: OpenDriver = (options, context, signal) =>
  openDconOn(openPort, options, context, signal);

/** As configured, with the module types that are named there. */
const driverOptions = dconOptions.safeExtend({ types: z.array(moduleTypeSchema).default([]) });

/** On a port of another kind, for tests. */
export async function openDconOn(
  port: OpenPort,
  given: Plain,
  context: DriverContext,
  signal: AbortSignal,
): Promise<Driver> {
  const options = valid(driverOptions, given, 'INVALID_OPTIONS');
  const { clock, log } = context;
  // A carriage return ends a frame; the module needs no silence, only time to let go of the wire.
  const gapMs = characterMs(options);
  const bus = await openBus({ options, openPort: port, clock, log, gapMs }, signal);
  const events = openEventQueue(context);
  const feeding = openHostWatchdogFeed(options.hostWatchdogMs, clock.monotonic());
  const link: Link = {
    bus,
    options,
    typeOf: moduleTypesWith(options.types),
    context,
    events,
    feeding,
    bringUpMutex: openMutex(MODULES_MAX),
    tests: 0,
    assertFed: () => assertFed(link),
    holdFeeds: () => holdFeeds(link, modules.all()),
    wasStarved: () => feeding.wasWithheld(clock.monotonic()),
  };
  const modules: Modules = openModules(
    options.devices.map(({ address }) => address),
    (address) => openModule(link, address, hwIdOf(context, address)),
  );
  return {
    run: (runSignal) => run(link, modules, runSignal),
    execute: executing(commandsOf(link, modules), 'a DCON link'),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}

interface Link extends ModuleLink {
  options: z.output<typeof driverOptions>;
  feeding: HostWatchdogFeed;
  /** Watchdogs that are tested now: none is fed meanwhile. */
  tests: number;
}

function assertFed({ tests }: Link): void {
  if (tests > 0)
    throw new DriverError(
      'BUSY',
      'a watchdog of this bus is being tested, and no module is fed meanwhile: fire it when the test is over',
    );
}

function holdFeeds(link: Link, modules: readonly Module[]): Disposable {
  if (link.tests > 0)
    throw new DriverError('BUSY', 'another watchdog of this bus is being tested: wait for its end');
  const pulsing = modules.find((one) => one.isPulsing());
  if (pulsing)
    throw new DriverError(
      'BUSY',
      `module ${aa(pulsing.address)} has an output on, which the test would end, as it feeds no module of the bus: wait for the end of its pulse, or end its stand-open`,
    );
  link.tests += 1;
  return {
    [Symbol.dispose]() {
      link.tests -= 1;
    },
  };
}

function hwIdOf({ linkId }: DriverContext, address: number): string {
  return `${linkId}-${aa(address)}`;
}

function run(link: Link, modules: Modules, signal: AbortSignal): Promise<never> {
  const { bus, context, events } = link;
  const parts: LinkParts = {
    bus,
    context,
    events,
    warnings: () => modules.all().flatMap((one) => one.warning() ?? []),
    repeat() {
      for (const one of modules.all()) one.report();
    },
    others: (working) => [modules.run(working), feed(link, modules, working)],
    async farewell(why) {
      if (!(why instanceof DriverError) || why.code !== 'LINK_LOST') return await farewell(modules, context);
      for (const one of modules.all()) one.abandon();
    },
  };
  return runLink(parts, signal);
}

async function farewell(modules: Modules, { clock, log }: DriverContext): Promise<void> {
  const late = () => new DriverError('NO_REPLY', 'outputs could not be switched off in time');
  using deadline = openDeadline(FAREWELL_MS, clock, late);
  const closed = await Promise.allSettled(modules.all().map((one) => one.close(deadline.signal)));
  closed.forEach((result) => {
    if (result.status === 'rejected')
      log.warn({ err: String(result.reason) }, 'a pulse was not ended: the watchdog of the module ends it');
  });
}

/** Says to all modules that the host is well, as long as that keeps nothing on that is not wanted. */
async function feed(link: Link, modules: Modules, signal: AbortSignal): Promise<never> {
  const { options, context, feeding } = link;
  const { clock, log } = context;
  const everyMs = options.hostWatchdogMs / FEEDS_PER_WATCHDOG;
  let withheldSince: number | undefined;
  let isLogged = false;
  for (;;) {
    const now = clock.monotonic();
    if (link.tests > 0) {
      feeding.withheld(now);
      await clock.sleep(everyMs, signal);
      continue;
    }
    const unsafe = unsafeModules(modules);
    const isAllowed = feeding.allowed(unsafe, now);
    const isAnyFed = modules.all().some((one) => one.isFed());
    if (isAllowed) {
      withheldSince = undefined;
      isLogged = false;
      if (isAnyFed) await feedAll(link, modules, signal);
    } else {
      withheldSince ??= now;
      if (!isLogged && isAnyFed && now - withheldSince > options.hostWatchdogMs) {
        isLogged = true;
        log.warn(
          { modules: [...unsafe.keys()].map(aa) },
          'modules may have an output on and cannot be reached: no host watchdog is fed until theirs have run out',
        );
      }
    }
    await clock.sleep(isAllowed ? everyMs : Math.min(everyMs, WITHHELD_MS), signal);
  }
}

async function feedAll(
  { bus, options, context, feeding }: Link,
  modules: Modules,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = context;
  const guarded = whenAsked(hostOkExchange(options), () => {
    // A pulse may have ended while this waited for its turn.
    if (!feeding.allowed(unsafeModules(modules), clock.monotonic())) throw WITHHELD;
  });
  const deadline = clock.monotonic() + options.hostWatchdogMs / FEEDS_PER_WATCHDOG;
  try {
    await bus.exchange(guarded, { class: 'command', deadline, attempts: 1 }, signal);
    feeding.fed(clock.monotonic());
  } catch (error) {
    if (!(error instanceof DriverError) || error.code === 'LINK_LOST') throw error;
    if (error === WITHHELD) return;
    log.warn({ code: error.code, err: error.message }, 'the host watchdogs were not fed');
  }
}

function unsafeModules(modules: Modules): Map<number, number> {
  const unsafe = new Map<number, number>();
  for (const one of modules.all()) {
    const since = one.unsafeSince();
    if (since !== undefined) unsafe.set(one.address, since);
  }
  return unsafe;
}

function commandsOf({ bus, options, context }: Link, modules: Modules): Commands {
  const hwIdAt = (address: number) => hwIdOf(context, address);
  const probing = { outstanding: bus.outstanding, framing: options, clock: context.clock, hwIdOf: hwIdAt };
  return commonCommands(bus, {
    watch: ({ devices }) => modules.watch(devices.map(({ address }) => address)),
    assertMayBeAsked: (addresses) => assertMayBeAsked(modules, addresses),
    probeAddress: (address, repeats, asking) => probeAddress(address, repeats, { ...asking, ...probing }),
    named: (hwId) => found(modules, hwId),
    testWatchdog: (module, { relay }, { signal }) => module.testWatchdog(relay, signal),
    endPulse: (module, { relay }, until) => module.endPulse(relay, until),
    pulse: (module, wanted, until) => module.pulse(wanted, until),
    async applySettings(module, apply) {
      module.apply(apply);
      return { reportedSettingsVersion: apply.settingsVersion };
    },
  });
}

function assertMayBeAsked(modules: Modules, addresses: readonly number[]): void {
  const asked = modules.all().filter(({ address }) => addresses.includes(address));
  const tested = asked.find((one) => one.isTested());
  if (tested) throw underTest(tested.address);
  const left = asked.find((one) => one.isLeftAlone());
  if (left)
    throw new DriverError(
      'BUSY',
      `an output of module ${aa(left.address)} does not go off, and its watchdog is to switch it off: ask nothing of it meanwhile`,
    );
}

function found(modules: Modules, hwId: string): Module {
  const module = modules.all().find((one) => one.hwId === hwId);
  if (module) return module;
  throw new DriverError('DEVICE_OFFLINE', `there is no module ${hwId} on this bus: watch its address first`);
}

/** By then each module has been asked whether its watchdog ran out, on a slow bus too (polling.ts). */
const NOTICED_MS = 60_000;

interface HostWatchdogFeed {
  /** Since when each module, by address, may have an output on that no one wants on; those that have none are absent. */
  allowed(unsafe: ReadonlyMap<number, number>, now: number): boolean;
  fed(now: number): void;
  /** On purpose, for a watchdog is tested. */
  withheld(now: number): void;
  /** They were withheld lately, so that watchdogs ran out which nothing is wrong with. */
  wasWithheld(now: number): boolean;
}

/**
 * Whether the host watchdogs may be fed. `~**` goes to every module, so it also keeps on what a module has left on: it
 * is withheld while an output may be on that no one wants on, until that module's own watchdog has switched it off.
 */
function openHostWatchdogFeed(watchdogMs: number, openedAt: number): HostWatchdogFeed {
  let fedAt = openedAt;
  let withheldAt = Number.NEGATIVE_INFINITY;
  /** Not fed for long enough: a watchdog that ran out holds the outputs whatever comes, until its flag is cleared. */
  const ranOut = new Map<number, number>();
  return {
    allowed(unsafe, now) {
      for (const [address, since] of unsafe) {
        if (now - Math.max(since, fedAt) > RUN_OUT_SHARE * watchdogMs) ranOut.set(address, since);
      }
      const isAllowed = [...unsafe].every(([address, since]) => ranOut.get(address) === since);
      if (!isAllowed) withheldAt = now;
      return isAllowed;
    },
    fed(now) {
      fedAt = now;
    },
    withheld(now) {
      withheldAt = now;
    },
    wasWithheld: (now) => now - withheldAt < NOTICED_MS,
  };
}
