/** Appends to the log of events. Everything here runs inside a commit job, so a fact and its event are durable together. */
import type { Clock } from '../../platform/clock.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { LiveEvent, WriteProgress } from './cloud-event.ts';
import {
  type EncodedEvent,
  type Gap,
  gapEvent,
  liveEvent,
  type Recorded,
  writeProgressEvent,
} from './cloud-event.ts';
import type { EventTable } from './table.ts';

export interface Recorder {
  writeProgress(progress: WriteProgress): void;
  publish(event: LiveEvent): void;
  /** What was not delivered, as an event for the sink of that number alone; returns its seq. */
  gap(gap: Gap, sink: { id: number; name: string }): number;
}

export interface RecorderOptions {
  table: EventTable;
  clock: Clock;
  systemId: string;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  /** After each event, which may be for all sinks. */
  recorded: (seq: number, bytes: number) => void;
}

export function openRecorder({ table, clock, systemId, time, recorded }: RecorderOptions): Recorder {
  function append(
    event: EncodedEvent,
    { clockSynchronised }: Recorded,
    whose: { encoderId: string; sequence: number | null; sink: number | null },
  ): number {
    const { encoderId, sequence, sink } = whose;
    const head = {
      encoderId,
      sequence,
      recordedAt: time.now(),
      clockSynchronised: clockSynchronised ? 1 : 0,
      bytes: Buffer.byteLength(event.body),
    };
    const seq = table.insert(event, head, sink);
    recorded(seq, head.bytes);
    return seq;
  }

  const now = (): Recorded => ({ systemId, at: clock.now(), clockSynchronised: time.synchronised() });

  return {
    writeProgress(progress) {
      const { encoderId } = progress;
      const at = now();
      const sequence = table.nextSequence(encoderId);
      append(writeProgressEvent(progress, sequence, at), at, { encoderId, sequence, sink: null });
    },
    publish(event) {
      table.insertLive(event.type, time.now(), liveEvent(event, now()));
    },
    gap(gap, { id, name }) {
      const at = now();
      return append(gapEvent(gap, name, at), at, { encoderId: gap.encoderId, sequence: null, sink: id });
    },
  };
}
