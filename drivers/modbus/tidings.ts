/**
 * Activations of inputs and alarms on their way to the daemon. They are told without holding up a poll: what comes while
 * one is being stored is added to the next one, so that there is at most one of each input and two of each alarm.
 */
import { openBell } from '../bus/pause.ts';
import type { Clock, DriverContext, DriverLog } from '../driver.ts';
import type { AlarmEvent, InputEvent } from '../rs485.ts';

export type Tiding =
  | ({ kind: 'input' } & Pick<InputEvent, 'hwId' | 'input' | 'activations' | 'total'>)
  | ({ kind: 'alarm' } & Pick<AlarmEvent, 'hwId' | 'alarm' | 'raised'>);

export interface Tidings {
  tell(tiding: Tiding): void;
  /** Emits until the signal fires. */
  run(signal: AbortSignal): Promise<never>;
}

type Waiting = Tiding & { at: number };

export interface TidingsOptions {
  emit: DriverContext['emit'];
  clock: Clock;
  log: DriverLog;
}

export function openTidings({ emit, clock, log }: TidingsOptions): Tidings {
  const waiting: Waiting[] = [];
  const bell = openBell(clock);

  function add(tiding: Tiding): void {
    const at = clock.now();
    const earlier = waiting.findLast((one) => nameOf(one) === nameOf(tiding));
    if (earlier?.kind === 'input' && tiding.kind === 'input')
      Object.assign(earlier, { ...tiding, at, activations: earlier.activations + tiding.activations });
    else if (earlier?.kind === 'alarm' && tiding.kind === 'alarm' && isThird(waiting, earlier, tiding))
      waiting.splice(waiting.indexOf(earlier), 1);
    else waiting.push({ ...tiding, at });
  }

  return {
    tell(tiding) {
      add(tiding);
      bell.ring();
    },
    async run(signal) {
      signal.addEventListener('abort', bell.ring, { once: true });
      for (;;) {
        signal.throwIfAborted();
        const next = waiting.shift();
        if (!next) {
          await bell.wait(Number.POSITIVE_INFINITY);
          continue;
        }
        const { kind, ...data } = next;
        const about = kind === 'input' ? `${next.total}` : `${next.raised}`;
        const id = `${nameOf(next)}-${about}-${data.at}`;
        await emit({ id, kind, data }, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          log.warn({ id, err: String(error) }, 'an event of a device was not stored');
        });
      }
    },
  };
}

function nameOf(tiding: Tiding): string {
  return `${tiding.hwId}-${tiding.kind === 'input' ? tiding.input : tiding.alarm}`;
}

/** Raised, cleared and raised again, all of it untold: the last two say nothing. */
function isThird(waiting: readonly Waiting[], earlier: Waiting, tiding: Tiding): boolean {
  const same = waiting.filter((one) => nameOf(one) === nameOf(earlier));
  return same.length > 1 && tiding.kind === 'alarm';
}
