/** What is being said on a wire, and how it reaches the gateway: parts of wire.ts, which decides who may speak. */
import { garbled, openRandom } from './random.ts';

/** Something that will happen by itself. */
export interface Due {
  at: number;
  happen(at: number): void;
}

export function earliest(events: Iterable<Due | undefined>): Due | undefined {
  let first: Due | undefined;
  for (const event of events) if (event && (!first || event.at < first.at)) first = event;
  return first;
}

/** Bytes for the gateway, due at `at`. */
export type Hear = (bytes: Uint8Array, at: number, isReplyEnd: boolean) => void;

export type Speaker = 'reply' | 'echo' | 'noise';

export interface Talks {
  /** `heldMs`: the line hands it on whole, so long after its end, whatever else is sent meanwhile. */
  begin(speaker: Speaker, bytes: Uint8Array, at: number, heldMs: number): void;
  /** How many of these speak now. */
  count(...speakers: Speaker[]): number;
  /** From `at` on only garbage is left of what these say. */
  spoil(at: number, ...speakers: Speaker[]): void;
  next(): Due | undefined;
  clear(): void;
}

interface Talk {
  speaker: Speaker;
  start: number;
  bytes: Buffer;
  handedOver: number;
  heldMs: number;
}

const GARBAGE_SEED = 485;

/** `delivery`: each byte at its time, or all of a talk with its last one. */
export function openTalks(options: {
  characterMs: number;
  delivery: 'byte' | 'frame';
  hear: Hear;
  ended: (speaker: Speaker, at: number) => void;
}): Talks {
  const { characterMs } = options;
  const random = openRandom(GARBAGE_SEED);
  let talks: Talk[] = [];
  let held: readonly Due[] = [];
  const said = (speakers: Speaker[]) => talks.filter(({ speaker }) => speakers.includes(speaker));
  const until = ({ handedOver, bytes, heldMs }: Talk) =>
    options.delivery === 'byte' && characterMs > 0 && heldMs === 0 ? handedOver + 1 : bytes.length;

  function handOver(talk: Talk, at: number): void {
    const { speaker, bytes, handedOver } = talk;
    talk.handedOver = until(talk);
    const isEnd = talk.handedOver === bytes.length;
    if (isEnd) {
      talks = talks.filter((other) => other !== talk);
      options.ended(speaker, at);
    }
    const said = bytes.subarray(handedOver, talk.handedOver);
    if (talk.heldMs > 0) hold(said, at + talk.heldMs);
    else options.hear(said, at, isEnd && speaker === 'reply');
  }
  function hold(bytes: Uint8Array, until: number): void {
    const one: Due = {
      at: until,
      happen(at) {
        held = held.filter((other) => other !== one);
        options.hear(bytes, at, true);
      },
    };
    held = [...held, one];
  }

  return {
    begin: (speaker, bytes, start, heldMs) =>
      void talks.push({ speaker, start, bytes: Buffer.from(bytes), handedOver: 0, heldMs }),
    count: (...speakers) => said(speakers).length,
    spoil(at, ...speakers) {
      for (const { bytes, start, handedOver } of said(speakers)) {
        const spoken = characterMs === 0 ? 0 : Math.floor((at - start) / characterMs);
        const from = Math.min(bytes.length, Math.max(0, handedOver, spoken));
        bytes.set(garbled(bytes.subarray(from), random), from);
      }
    },
    next: () =>
      earliest([
        ...held,
        ...talks.map((talk) => ({
          at: talk.start + until(talk) * characterMs,
          happen: (at: number) => handOver(talk, at),
        })),
      ]),
    clear() {
      talks = [];
      held = [];
    },
  };
}

/** An adapter that gathers what it hears, and hands it over when its timer fires. 0: at once. */
export function openAdapter(
  latencyMs: number,
  hear: Hear,
): { hear: Hear; next(): Due | undefined; clear(): void } {
  let held: { at: number; bytes: Buffer; isReplyEnd: boolean } | undefined;
  function release(at: number): void {
    if (!held) return;
    const { bytes, isReplyEnd } = held;
    held = undefined;
    hear(bytes, at, isReplyEnd);
  }
  return {
    hear(bytes, at, isReplyEnd) {
      if (latencyMs === 0) {
        hear(bytes, at, isReplyEnd);
        return;
      }
      held = {
        at: held?.at ?? Math.ceil(at / latencyMs) * latencyMs,
        bytes: Buffer.concat([held?.bytes ?? Buffer.alloc(0), bytes]),
        isReplyEnd: isReplyEnd || held?.isReplyEnd === true,
      };
    },
    next: () => held && { at: held.at, happen: release },
    clear() {
      held = undefined;
    },
  };
}
