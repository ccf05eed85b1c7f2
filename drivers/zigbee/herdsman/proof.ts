/**
 * That a coordinator reads its port: what is written to it can sit in buffers that no one empties, and a coordinator that
 * wakes later could open a door late.
 */
import type { Clock } from '../../contract/driver.ts';
import { settles, within } from '../../contract/waiting.ts';
import type { Gate } from './gate.ts';

/** A coordinator answers within milliseconds, over a busy network of the building within some tenths of a second. */
const ANSWER_MS = 1_000;
/**
 * What a coordinator has just shown still holds: it is asked while a frame is held until the intent of an unlock is
 * stored, which takes some milliseconds.
 */
const SHOWN_MS = 20;

/** A frame on its way. */
export interface Passage {
  gate: Gate;
  /** It moves something at a door. */
  actuates: boolean;
  clock: Clock;
}

interface Proof<Port> {
  port: Port;
  /** Monotonic milliseconds of the question. */
  at: number;
  answered: Promise<unknown>;
}

/** `ping`: a question that the process answers that reads the port. */
export function openProofs<Port>(ping: (port: Port) => Promise<unknown>) {
  let proof: Proof<Port> | undefined;
  /** Rejects when the coordinator does not answer. */
  return (port: Port, clock: Clock): Promise<unknown> => {
    const at = clock.monotonic();
    if (proof?.port === port && at - proof.at <= SHOWN_MS) return proof.answered;
    proof = { port, at, answered: within(ping(port), ANSWER_MS, clock, silent) };
    return proof.answered;
  };
}

/**
 * Written only when the coordinator has just shown that it reads its port; when it does not take this frame, what is left
 * of it on this side is dropped with the connection (`close`).
 */
export async function actuate<T>(
  { gate, clock }: Passage,
  write: () => Promise<T>,
  close: () => Promise<void>,
): Promise<T> {
  const taken = write();
  if (await settles(taken, ANSWER_MS, clock)) return taken;
  taken.catch(() => undefined);
  if (gate.close() === 'sent') await close();
  throw silent();
}

const silent = () => new Error('the coordinator does not answer');
