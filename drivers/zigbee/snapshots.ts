/** What is needed to carry the network on, sent to the daemon after each change of it and every hour. */
import type { DriverContext } from '../contract/driver.ts';
import { unlessAborted } from '../contract/waiting.ts';
import type { Snapshot } from '../contract/zgate.ts';
import type { Network } from './network.ts';
import type { Outbox } from './outbox.ts';
import { redact } from './redact.ts';

const EVERY_MS = 3_600_000;
/** Locks join in groups. */
const SETTLE_MS = 5_000;
/** After a start, when all that it has to write is over: the daemon may have none. */
const FIRST_MS = 180_000;

export interface Snapshots {
  /** Something is new. */
  due(): void;
  run(signal: AbortSignal): Promise<never>;
}

export function openSnapshots(options: {
  network: Pick<Network, 'radio' | 'files'>;
  context: Pick<DriverContext, 'clock' | 'log'>;
  outbox: Outbox;
  locks(): number;
}): Snapshots {
  const { network, context, outbox } = options;
  const { clock, log } = context;
  let isDue = network.radio().formed;
  let soon = new AbortController();

  async function take(signal: AbortSignal): Promise<void> {
    try {
      const radio = network.radio();
      await unlessAborted(radio.save(), signal);
      const archive = network.files.archive();
      const snapshot = { archive, locks: options.locks(), hwId: radio.hwId, zigbeeChannel: radio.channel };
      await outbox.emitDurably('snapshot', snapshot satisfies Snapshot);
    } catch (error) {
      if (signal.aborted) return;
      const reason = redact(error instanceof Error ? error.message : 'no reason');
      log.warn({ reason }, 'no snapshot of the network could be taken; the next one is tried in time');
    }
  }

  return {
    due() {
      isDue = true;
      soon.abort();
    },
    async run(signal) {
      let waitMs = isDue ? SETTLE_MS : FIRST_MS;
      for (;;) {
        soon = new AbortController();
        if (isDue) waitMs = SETTLE_MS;
        isDue = false;
        await clock.sleep(waitMs, AbortSignal.any([signal, soon.signal])).catch(() => undefined);
        signal.throwIfAborted();
        if (soon.signal.aborted) continue;
        await take(signal);
        waitMs = EVERY_MS;
      }
    },
  };
}
