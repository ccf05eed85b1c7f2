/** The modules of a bus: those that are configured, and those that are watched besides. */
import { DriverError } from '../contract/driver.ts';
import type { Module } from './module.ts';

export interface Modules {
  all(): readonly Module[];
  /** These and the configured ones; a module that is neither any more is let go when its outputs are off. */
  watch(addresses: readonly number[]): void;
  /** Runs all of them until the signal fires; throws what one of them throws. */
  run(signal: AbortSignal): Promise<never>;
}

const LET_GO = new DriverError('DEVICE_OFFLINE', 'the module is watched no more');

interface Entry {
  module: Module;
  leave: AbortController;
}

interface Running {
  signal: AbortSignal;
  failed: (error: unknown) => void;
}

export function openModules(configured: readonly number[], open: (address: number) => Module): Modules {
  const modules = new Map<number, Entry>();
  let wanted = new Set(configured);
  let running: Running | undefined;

  function add(address: number): void {
    if (modules.has(address)) return;
    const entry = { module: open(address), leave: new AbortController() };
    modules.set(address, entry);
    if (running) begin(address, entry, running);
  }

  function begin(address: number, { module, leave }: Entry, { signal, failed }: Running): void {
    const ended = (error: unknown) => {
      if (error !== LET_GO) return failed(error);
      modules.delete(address);
      // It may have been asked for again meanwhile.
      if (wanted.has(address)) add(address);
    };
    module.run(AbortSignal.any([signal, leave.signal])).catch(ended);
  }

  function drop(address: number, { module, leave }: Entry): void {
    if (!running) {
      modules.delete(address);
      return;
    }
    const go = () => leave.abort(LET_GO);
    const { signal } = running;
    // A device that is no module of ours is not looked after, and the watchdogs of all are fed in one.
    const isOff = module.close(signal).catch(() => module.outputsGone(signal));
    isOff.then(go, go);
  }

  for (const address of wanted) add(address);
  return {
    all: () => [...modules.values()].map(({ module }) => module),
    watch(addresses) {
      wanted = new Set([...configured, ...addresses]);
      for (const address of wanted) add(address);
      for (const [address, entry] of modules) if (!wanted.has(address)) drop(address, entry);
    },
    async run(signal) {
      signal.throwIfAborted();
      const failure = Promise.withResolvers<never>();
      signal.addEventListener('abort', () => failure.reject(signal.reason), { once: true });
      running = { signal, failed: failure.reject };
      for (const [address, entry] of modules) begin(address, entry, running);
      return await failure.promise;
    },
  };
}
