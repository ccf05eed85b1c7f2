/**
 * DCON modules for tests on a manual clock, behind the port of test/drivers/bus/port.ts. The frames are made here again,
 * so that a mistake in frame.ts is not made twice.
 */

import type { Clock } from '../../../drivers/contract/driver.ts';
import type { Answer } from '../bus/port.ts';

export interface TestModule {
  /** What it says to $AAM. */
  name: string;
  kind: 'host' | 'safety' | 'none';
  outputs: number;
  inputs: number;
  /** Of the outputs in $AAX0 and $AAX1: manuals differ. */
  safetyDigits: 2 | 4;
  latched: number;
  /** Says nothing. */
  dead: boolean;
  /** Hears, does, and loses so many of its next answers. */
  mute: number;
  /** Refuses so many commands that switch one output, after those whose answers are lost. */
  refusals: number;
  /** It carries out what it refuses. */
  refusesWhatItDoes: boolean;
  /** Outputs that stay as they are, whatever it is ordered. */
  stuck: number;
  /** Its watchdog does nothing, though it says that it is armed. */
  isUnguarded: boolean;
  /** A safety watchdog that has run out does not run again before it is armed. */
  runsOutOnce: boolean;
  /** Commands it does not know, and so does not answer. */
  unknown: RegExp;
  /** All it was sent, without checksum, oldest first. */
  readonly heard: string[];
  /** Power off and on. */
  restart(): void;
  /** As the wires see it now: a watchdog may have run out since it was last asked. */
  now(): { outputs: number; timedOut: boolean };
}

export interface TestModules {
  module(address: number): TestModule;
  answer(request: Uint8Array): Answer;
}

/** What a module is to begin with, by address. */
type Given = Partial<Pick<TestModule, 'outputs' | 'inputs' | 'dead' | 'unknown' | 'safetyDigits'>> &
  Pick<TestModule, 'name' | 'kind'> & { safe?: number; powerOn?: number; armedTenths?: number };

export function playModules(clock: Clock, given: Record<number, Given>): TestModules {
  const modules = new Map(
    Object.entries(given).map(([address, one]) => [
      Number(address),
      openTestModule(Number(address), one, clock),
    ]),
  );
  return {
    module(address) {
      const found = modules.get(address);
      if (!found) throw new Error(`no test module at ${address}`);
      return found.module;
    },
    answer(request) {
      const text = Buffer.from(request).toString('latin1').slice(0, -3);
      if (text === '~**') {
        for (const { feed, module } of modules.values()) if (!module.dead) feed();
        return null;
      }
      const found = modules.get(Number.parseInt(text.slice(1, 3), 16));
      const reply = found?.answer(text);
      return reply === undefined ? null : sealed(reply);
    },
  };
}

export function sealed(text: string): Uint8Array {
  const sum = [...text].reduce((total, character) => total + character.charCodeAt(0), 0) % 256;
  return Buffer.from(`${text}${hex(sum)}\r`, 'latin1');
}

const hex = (value: number, digits = 2) => value.toString(16).toUpperCase().padStart(digits, '0');

interface Watchdog {
  tenths: number;
  enabled: boolean;
  fedAt: number;
  timedOut: boolean;
  safe: number;
  powerOn: number;
}

/** What is inside. */
interface Works {
  module: TestModule;
  watchdog: Watchdog;
  reset: { was: boolean };
  aa: string;
  clock: Clock;
}

function openTestModule(address: number, given: Given, clock: Clock) {
  const watchdog: Watchdog = {
    tenths: given.armedTenths ?? 0,
    enabled: given.armedTenths !== undefined,
    fedAt: clock.monotonic(),
    timedOut: false,
    safe: given.safe ?? 0,
    powerOn: given.powerOn ?? 0,
  };
  const reset = { was: true };

  function settle(): void {
    const due =
      !module.isUnguarded && watchdog.enabled && clock.monotonic() >= watchdog.fedAt + watchdog.tenths * 100;
    if (!due) return;
    watchdog.enabled = module.kind === 'safety' && !module.runsOutOnce;
    watchdog.timedOut = module.kind === 'host';
    module.outputs = watchdog.safe;
  }

  const module: TestModule = {
    name: given.name,
    kind: given.kind,
    outputs: given.outputs ?? 0,
    inputs: given.inputs ?? 0,
    safetyDigits: given.safetyDigits ?? 2,
    latched: 0,
    dead: given.dead ?? false,
    mute: 0,
    refusals: 0,
    refusesWhatItDoes: false,
    stuck: 0,
    isUnguarded: false,
    runsOutOnce: false,
    unknown: given.unknown ?? /^never$/,
    heard: [],
    restart() {
      settle();
      module.outputs = watchdog.timedOut ? watchdog.safe : watchdog.powerOn;
      reset.was = true;
    },
    now() {
      settle();
      return { outputs: module.outputs, timedOut: watchdog.timedOut };
    },
  };
  const works: Works = { module, watchdog, reset, aa: hex(address), clock };

  return {
    module,
    feed() {
      settle();
      if (module.kind === 'host') watchdog.fedAt = clock.monotonic();
    },
    answer(text: string): string | undefined {
      settle();
      if (module.dead) return undefined;
      module.heard.push(text);
      if (module.kind === 'safety') watchdog.fedAt = clock.monotonic();
      if (module.unknown.test(text)) return undefined;
      const command = text[0] + text.slice(3);
      if (module.mute === 0 && module.refusals > 0 && command.startsWith('#1')) {
        module.refusals -= 1;
        if (module.refusesWhatItDoes) switching(works, command);
        return '?';
      }
      const answer = switching(works, command) ?? arming(works, command) ?? reporting(works, command);
      if (module.mute === 0) return answer;
      module.mute -= 1;
      return undefined;
    },
  };
}

function switching({ module, watchdog }: Works, command: string): string | undefined {
  const [, one, level] = /^#1(.)0([01])$/.exec(command) ?? [];
  const [, all] = /^#00(..)$/.exec(command) ?? [];
  if (!one && !all) return undefined;
  if (watchdog.timedOut) return '!';
  const bit = 1 << Number.parseInt(one ?? '', 16);
  const single = level === '1' ? module.outputs | bit : module.outputs & ~bit;
  const value = all ? Number.parseInt(all, 16) : single;
  module.outputs = (value & ~module.stuck) | (module.outputs & module.stuck);
  return '>';
}

function arming({ watchdog, module, aa, clock }: Works, command: string): string | undefined {
  const [, host] = /^~31(..)$/.exec(command) ?? [];
  const [, safety, value] = /^\$X0(....)(0+)$/.exec(command) ?? [];
  if (safety && value?.length !== module.safetyDigits) return `?${aa}`;
  const tenths = module.kind === 'host' ? host : module.kind === 'safety' ? safety : undefined;
  if (!tenths) return undefined;
  watchdog.enabled = true;
  watchdog.fedAt = clock.monotonic();
  watchdog.tenths = Number.parseInt(tenths, 16);
  return host ? `!${aa}` : '>';
}

function reporting({ module, watchdog, reset, aa }: Works, command: string): string {
  switch (command) {
    case '$M':
      return `!${aa}${module.name}`;
    case '$F':
      return `!${aa}B1.2`;
    case '$5': {
      const answer = `!${aa}${reset.was ? 1 : 0}`;
      reset.was = false;
      return answer;
    }
    case '$6':
      return `!${hex(module.outputs)}${hex(module.inputs)}00`;
    case '$L1':
      return `!00${hex(module.latched)}00`;
    case '$C':
      module.latched = 0;
      return `!${aa}`;
    case '$X1':
      return `!${hex(watchdog.tenths, 4)}${hex(watchdog.safe, module.safetyDigits)}`;
    case '~0':
      return `!${aa}${watchdog.timedOut ? '04' : '00'}`;
    case '~1':
      watchdog.timedOut = false;
      return `!${aa}`;
    case '~2':
      return `!${aa}${watchdog.enabled ? 1 : 0}${hex(watchdog.tenths)}`;
    case '~4S':
      return `!${aa}${hex(watchdog.safe)}00`;
    case '~4P':
      return `!${aa}${hex(watchdog.powerOn)}00`;
    case '~5S':
      watchdog.safe = module.outputs;
      return `!${aa}`;
    case '~5P':
      watchdog.powerOn = module.outputs;
      return `!${aa}`;
    default:
      return `?${aa}`;
  }
}
