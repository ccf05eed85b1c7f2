/**
 * What happened at devices, on its way to the daemon. It is emitted without holding up a poll: what comes while one is being
 * stored is added to the next one, so that there is at most one of each input and two of each alarm. Credentials are
 * emitted one by one.
 */

import type { DriverContext } from '../contract/driver.ts';
import type { AlarmEvent, CredentialEvent, InputEvent } from '../contract/rs485.ts';
import { openNotifier } from '../contract/waiting.ts';

export type DeviceEvent =
  | ({ kind: 'input' } & Omit<InputEvent, 'at'>)
  | ({ kind: 'alarm' } & Omit<AlarmEvent, 'at'>)
  | ({ kind: 'credential' } & Omit<CredentialEvent, 'at'>);

export interface EventQueue {
  add(event: DeviceEvent): void;
  /** Emits until the signal fires; what waits then is handed over all the same. */
  run(signal: AbortSignal): Promise<never>;
}

type Waiting = DeviceEvent & { at: number };

/** Of all readers of a bus: more than people can show while the disk is slow. The oldest is dropped. */
const CREDENTIALS_MAX = 64;

export function openEventQueue({
  emit,
  clock,
  log,
}: Pick<DriverContext, 'emit' | 'clock' | 'log'>): EventQueue {
  const waiting: Waiting[] = [];
  const notifier = openNotifier(clock);
  let credentials = 0;

  function enqueue(event: DeviceEvent): void {
    const at = clock.now();
    const earlier = waiting.findLast((one) => nameOf(one) === nameOf(event));
    if (event.kind === 'credential') makeRoom();
    if (earlier?.kind === 'input' && event.kind === 'input')
      Object.assign(earlier, { ...event, at, activations: earlier.activations + event.activations });
    else if (earlier?.kind === 'alarm' && event.kind === 'alarm' && isThird(waiting, earlier))
      waiting.splice(waiting.indexOf(earlier), 1);
    else waiting.push({ ...event, at });
  }

  function makeRoom(): void {
    const shown = waiting.filter(({ kind }) => kind === 'credential');
    const [oldest] = shown;
    if (!oldest || shown.length < CREDENTIALS_MAX) return;
    waiting.splice(waiting.indexOf(oldest), 1);
    log.warn({ hwId: oldest.hwId }, 'what a reader read was dropped: too much waits to be stored');
  }

  function idOf(event: Waiting): string {
    const base = `${nameOf(event)}-`;
    if (event.kind === 'input') return `${base}${event.total}-${event.at}`;
    if (event.kind === 'alarm') return `${base}${event.raised}-${event.at}`;
    credentials += 1;
    return `${base}${credentials}-${event.at}`;
  }

  async function publish(event: Waiting): Promise<void> {
    const id = idOf(event);
    const { kind, ...data } = event;
    try {
      // It has happened, whatever becomes of the link: nothing takes it back.
      await emit({ id, kind, data }, new AbortController().signal);
    } catch (error) {
      log.warn({ id, err: String(error) }, 'an event of a device was not stored');
    }
  }

  return {
    add(event) {
      enqueue(event);
      notifier.notify();
    },
    async run(signal) {
      const ended = Promise.withResolvers<void>();
      const end = () => {
        ended.resolve();
        notifier.notify();
      };
      if (signal.aborted) end();
      signal.addEventListener('abort', end, { once: true });
      for (;;) {
        const next = waiting.shift();
        if (next) {
          await Promise.race([publish(next), ended.promise]);
          continue;
        }
        signal.throwIfAborted();
        await notifier.wait(Number.POSITIVE_INFINITY);
      }
    },
  };
}

function nameOf(event: DeviceEvent): string {
  if (event.kind === 'credential') return `${event.hwId}-credential`;
  return `${event.hwId}-${event.kind === 'input' ? event.input : event.alarm}`;
}

/** Raised, cleared and raised again, none of it emitted yet: the last two say nothing. */
function isThird(waiting: readonly Waiting[], earlier: Waiting): boolean {
  return waiting.filter((one) => nameOf(one) === nameOf(earlier)).length > 1;
}
