/**
 * What happened at devices, on its way to the daemon. It is told without holding up a poll: what comes while one is being
 * stored is added to the next one, so that there is at most one of each input and two of each alarm. Credentials are
 * told one by one.
 */
import type { Clock, DriverContext, DriverLog } from '../driver.ts';
import type { AlarmEvent, CredentialEvent, InputEvent } from '../rs485.ts';
import { openBell } from './pause.ts';

export type Tiding =
  | ({ kind: 'input' } & Omit<InputEvent, 'at'>)
  | ({ kind: 'alarm' } & Omit<AlarmEvent, 'at'>)
  | ({ kind: 'credential' } & Omit<CredentialEvent, 'at'>);

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

/** Of all readers of a bus: more than people can show while the disk is slow. The oldest is dropped. */
const CREDENTIALS_MAX = 64;

export function openTidings({ emit, clock, log }: TidingsOptions): Tidings {
  const waiting: Waiting[] = [];
  const bell = openBell(clock);
  let credentials = 0;

  function add(tiding: Tiding): void {
    const at = clock.now();
    const earlier = waiting.findLast((one) => nameOf(one) === nameOf(tiding));
    if (tiding.kind === 'credential') makeRoom();
    if (earlier?.kind === 'input' && tiding.kind === 'input')
      Object.assign(earlier, { ...tiding, at, activations: earlier.activations + tiding.activations });
    else if (earlier?.kind === 'alarm' && tiding.kind === 'alarm' && isThird(waiting, earlier))
      waiting.splice(waiting.indexOf(earlier), 1);
    else waiting.push({ ...tiding, at });
  }

  function makeRoom(): void {
    const shown = waiting.filter(({ kind }) => kind === 'credential');
    const [oldest] = shown;
    if (!oldest || shown.length < CREDENTIALS_MAX) return;
    waiting.splice(waiting.indexOf(oldest), 1);
    log.warn({ hwId: oldest.hwId }, 'what a reader read was dropped: too much waits to be stored');
  }

  function idOf(tiding: Waiting): string {
    const base = `${nameOf(tiding)}-`;
    if (tiding.kind === 'input') return `${base}${tiding.total}-${tiding.at}`;
    if (tiding.kind === 'alarm') return `${base}${tiding.raised}-${tiding.at}`;
    credentials += 1;
    return `${base}${credentials}-${tiding.at}`;
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
        const id = idOf(next);
        const { kind, ...data } = next;
        await emit({ id, kind, data }, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          log.warn({ id, err: String(error) }, 'an event of a device was not stored');
        });
      }
    },
  };
}

function nameOf(tiding: Tiding): string {
  if (tiding.kind === 'credential') return `${tiding.hwId}-credential`;
  return `${tiding.hwId}-${tiding.kind === 'input' ? tiding.input : tiding.alarm}`;
}

/** Raised, cleared and raised again, all of it untold: the last two say nothing. */
function isThird(waiting: readonly Waiting[], earlier: Waiting): boolean {
  return waiting.filter((one) => nameOf(one) === nameOf(earlier)).length > 1;
}
