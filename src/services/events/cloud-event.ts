/** What an event looks like on the wire: CloudEvents 1.0 in structured JSON. Pure. */
import { randomUUID } from 'node:crypto';
import { uuidV5 } from '../../platform/uuid.ts';

/** A step of one key of one write request (interface specification, section 6). */
export interface WriteProgress {
  encoderId: string;
  requestId: string;
  jobId: string;
  keyId: string;
  /** From 0, in the order of the request's data. */
  entryIndex: number;
  entryCount: number;
  status: string;
  error?: { code: string; message?: string };
  /** The whole request: how many entries are in which terminal status, and how many in none. */
  totals: Record<string, number>;
  correlationId: string;
}

/** A change for live readers alone (GET /events); it is not forwarded upstream. */
export interface LiveEvent {
  /** `gatehouse.<kind>.<what>.v1`; the kind decides who may read it (live.ts). */
  type: string;
  /** Whose change it is, as a path below the system, such as encoders/desk-1. */
  source: string;
  /** Id of what has changed. */
  subject: string;
  data: Record<string, unknown>;
  correlationId?: string;
}

/** Namespace of our event ids (RFC 9562, section 6.6), drawn once. It never changes: consumers know events by id. */
const EVENT_NAMESPACE = '8f0f6a0e-6c3a-4c56-9d7a-2b1a3c1f5e42';
/** As wide as the sequence extension needs to stay in lexical order for the life of an encoder. */
const SEQUENCE_DIGITS = 12;

export const CONTENT_TYPE = 'application/cloudevents+json; charset=utf-8';

export type GapReason =
  /** Older than upstream.maxAge before it could be sent. */
  | 'AGE'
  /** More than upstream.maxBytes waited. */
  | 'SIZE'
  /** The service refused it, or broke the connection over it; it is kept as a dead letter. */
  | 'REJECTED'
  /** Longer than the service takes (MQTT 5, Maximum Packet Size); it is kept as a dead letter. */
  | 'TOO_LARGE';

/** An event as the log stores it. `body` lacks `replayed`, which is decided at each send. */
export interface EncodedEvent {
  id: string;
  topic: string;
  type: string;
  body: string;
}

export interface Recorded {
  systemId: string;
  /** Epoch milliseconds. */
  at: number;
  clockSynchronised: boolean;
}

export interface Gap {
  encoderId: string;
  first: number;
  last: number;
  reason: GapReason;
}

/** One step of one key. The same step has the same id, however often it is reported. */
export function writeProgressId({ jobId, keyId, status }: WriteProgress): string {
  return uuidV5(EVENT_NAMESPACE, JSON.stringify([jobId, keyId, status]));
}

/** `sequence` counts the events of this encoder from 1, or from `from`, where a restore or a takeover let it go on: nothing between was used. */
export function writeProgressEvent(
  progress: WriteProgress,
  { sequence, from = 1 }: { sequence: number; from?: number },
  recorded: Recorded,
): EncodedEvent {
  const { encoderId, requestId, keyId, entryIndex, entryCount, status, error, totals } = progress;
  const { systemId } = recorded;
  const id = writeProgressId(progress);
  const type = `gatehouse.encoder.write.${status}.v1`;
  const body = JSON.stringify({
    ...envelope(id, type, recorded),
    source: `/systems/${systemId}/encoders/${encoderId}`,
    subject: keyId,
    sequence: sequenceText(sequence),
    ...(from > 1 && { sequencefrom: sequenceText(from) }),
    correlationid: progress.correlationId,
    data: { requestId, keyId, entryIndex, entryCount, status, ...(error && { error }), totals },
  });
  return { id, topic: `gatehouse/1/${systemId}/encoders/${encoderId}/events`, type, body };
}

const sequenceText = (sequence: number) => String(sequence).padStart(SEQUENCE_DIGITS, '0');

const GAP_TYPE = 'gatehouse.events.gap.v1';

/** Says which events of an encoder will not come to this sink. Its id names its content. */
export function gapEvent(
  { encoderId, first, last, reason }: Gap,
  sink: string,
  recorded: Recorded,
): EncodedEvent {
  const { systemId } = recorded;
  const id = uuidV5(EVENT_NAMESPACE, JSON.stringify(['gap', sink, encoderId, first, last, reason]));
  const body = JSON.stringify({
    ...envelope(id, GAP_TYPE, recorded),
    source: `/systems/${systemId}`,
    subject: encoderId,
    data: { encoderId, firstSequence: first, lastSequence: last, count: last - first + 1, reason },
  });
  return { id, topic: `gatehouse/1/${systemId}/gaps`, type: GAP_TYPE, body };
}

/** An event that is not forwarded upstream. */
export function liveEvent(
  { type, source, subject, data, correlationId }: LiveEvent,
  recorded: Recorded,
): string {
  return JSON.stringify({
    ...envelope(randomUUID(), type, recorded),
    source: `/systems/${recorded.systemId}/${source}`,
    subject,
    ...(correlationId !== undefined && { correlationid: correlationId }),
    data,
  });
}

/** The stored body with the extension that says whether this event may have been sent before. */
export function withReplayed(body: string, replayed: boolean): string {
  return `${body.slice(0, -1)},"replayed":${replayed}}`;
}

/** A whole event in binary content mode: its data, and every other attribute as text. */
export function binaryOf(body: string): {
  data: string;
  contentType: string;
  attributes: Record<string, string>;
} {
  const { data, datacontenttype, ...rest } = JSON.parse(body) as Record<string, unknown>;
  const attributes = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value)]));
  return { data: JSON.stringify(data), contentType: String(datacontenttype), attributes };
}

function envelope(id: string, type: string, { at, clockSynchronised }: Recorded) {
  return {
    specversion: '1.0',
    id,
    type,
    time: new Date(at).toISOString(),
    datacontenttype: 'application/json',
    clocksynced: clockSynchronised,
  };
}
