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
import type { EventTable, LinkState } from './table.ts';

export interface Recorder {
  writeProgress(progress: WriteProgress): void;
  publish(event: LiveEvent): void;
  /** Joins the encoder's latest gap when the two are one and that one is not sent yet. */
  gap(gap: Gap): void;
  /** Events that gaps stand for, since this start; once more where a commit has to be repeated. */
  dropped(): number;
}

export interface RecorderOptions {
  table: EventTable;
  clock: Clock;
  systemId: string;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  link: LinkState;
}

export function openRecorder({ table, clock, systemId, time, link }: RecorderOptions): Recorder {
  function append(
    event: EncodedEvent,
    recorded: Recorded,
    encoderId: string,
    sequence: number | null,
  ): number {
    const bytes = Buffer.byteLength(event.body);
    const seq = table.insert(event, {
      encoderId,
      sequence,
      recordedAt: time.now(),
      clockSynchronised: recorded.clockSynchronised ? 1 : 0,
      bytes,
    });
    table.countUp(seq);
    return seq;
  }

  /** Takes back the encoder's latest gap if `gap` continues it and no one can have seen it; returns where it began. */
  function takeBack({ encoderId, first, reason }: Gap): number | undefined {
    const latest = table.latestGap(
      encoderId,
      Math.max(link.heldThrough, link.sentThrough, link.aheadThrough),
    );
    if (latest?.last !== first - 1 || link.ahead.has(latest.seq) || latest.reason !== reason)
      return undefined;
    table.countAll();
    table.countDown(table.between(latest.seq - 1, latest.seq));
    table.removeGap(latest.seq);
    return latest.first;
  }

  let dropped = 0;
  const now = (): Recorded => ({ systemId, at: clock.now(), clockSynchronised: time.synchronised() });

  return {
    writeProgress(progress) {
      const recorded = now();
      const sequence = table.nextSequence(progress.encoderId);
      const event = writeProgressEvent(progress, sequence, recorded);
      append(event, recorded, progress.encoderId, sequence);
    },
    publish(event) {
      const recorded = now();
      table.insertLive(event.type, time.now(), liveEvent(event, recorded));
    },
    gap(gap) {
      const recorded = now();
      const whole = { ...gap, first: takeBack(gap) ?? gap.first };
      if (table.hasGap(whole)) return;
      dropped += gap.last - gap.first + 1;
      const event = gapEvent(whole, recorded);
      const seq = append(event, recorded, gap.encoderId, null);
      table.insertGap(seq, whole, time.now());
    },
    dropped: () => dropped,
  };
}
