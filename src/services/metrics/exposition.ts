/**
 * The text Prometheus reads, and the only importer of its client. The library is loaded when somebody first asks: it
 * takes some megabytes and 40 ms that a site without Prometheus need not spend.
 */
import type { Registry } from '@prometheus-io/client';
import { type Family, familiesOf, type Sources } from './families.ts';

/** Between two looks at the event loop's delay; each wakes the processor. */
const EVENT_LOOP_LOOK_MS = 20;

export interface Exposition {
  /** Every metric of Gatehouse, and the usual ones of a Node process (memory, processor, event loop, descriptors). */
  text(): Promise<string>;
}

export function openExposition(sources: Sources): Exposition {
  let loading: Promise<Load> | undefined;
  return {
    async text() {
      loading ??= load();
      const { node, Registry } = await loading;
      const own = new Registry();
      for (const family of familiesOf(sources)) own.registerMetric(asMetric(family));
      return `${await own.metrics()}\n${await node.metrics()}`;
    },
  };
}

interface Load {
  Registry: new () => Registry;
  /** From the first request on it watches the event loop and the garbage collector. */
  node: Registry;
}

async function load(): Promise<Load> {
  const { collectDefaultMetrics, Registry } = await import('@prometheus-io/client');
  const node = new Registry();
  collectDefaultMetrics({ register: node, eventLoopMonitoringPrecision: EVENT_LOOP_LOOK_MS });
  return { Registry, node };
}

/** A registry asks nothing else of a metric than this; its own kinds keep numbers, which we have already. */
function asMetric(family: Family): Parameters<Registry['registerMetric']>[0] {
  return { ...family, get: async () => family } as never;
}
