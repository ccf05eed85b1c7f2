/**
 * What goes over a bus, as a stream for the local administrator. The host keeps a bounded number of packets
 * (drivers/bus/trace.ts); each time the reader has taken a batch the next one is fetched, so that a slow reader loses the oldest
 * and delays no one. It ends with its time, its packets or its bytes.
 */

import { randomUUID } from 'node:crypto';
import { DriverError, type DriverErrorCode, type Plain } from '../../../drivers/contract/driver.ts';
import { type Trace, type Traced, traced } from '../../../drivers/contract/rs485.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { TraceEvent, TraceQuery } from './bus-schema.ts';
import type { Bus, Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';

/** Of a trace: an hour of a bus at 115200 baud that is never silent, and no more on the disk it is written to. */
const TRACE_MAX_BYTES = 64 * 1024 * 1024;
/** What a packet costs there beside its bytes. */
const PACKET_BYTES = 64;
/** For one batch, which the host gathers for 250 ms. */
const BATCH_MS = 5_000;
/** While the link is down. */
const LOOK_AGAIN_MS = 500;
/** A connection without a word for two minutes is cut off (src/platform/http/server.ts). */
const HEARTBEAT_MS = 15_000;
/** The link is down, or went down while the host gathered: it comes up again. */
const INTERRUPTIONS: readonly DriverErrorCode[] = ['LINK_LOST', 'OUTCOME_UNKNOWN', 'DEADLINE_PASSED'];
/** A batch ends by itself. */
const NEVER = new AbortController().signal;

export interface Traces {
  /** Throws NOT_FOUND, VALIDATION_FAILED, IN_PROGRESS, DEVICE_OFFLINE. What the stream has: bus-schema.ts. */
  trace(
    bus: string,
    query: TraceQuery,
    caller: Caller & { closing: AbortSignal },
  ): ReadableStream<Uint8Array>;
}

export function openTraces(context: Rs485Context, buses: Buses): Traces {
  const going = new Set<string>();
  return {
    trace(busId, query, { closing, ...caller }) {
      if (!buses.has(busId))
        throw new GatehouseError(
          'NOT_FOUND',
          `There is no bus ${busId}: gatehouse bus status has those there are.`,
        );
      if (query.decrypt) buses.assertOsdp(busId, 'OSDP is encrypted');
      if (going.has(busId))
        throw new GatehouseError('IN_PROGRESS', `Bus ${busId} is traced already: end that trace first.`);
      if (!buses.isUp(busId))
        throw new GatehouseError('DEVICE_OFFLINE', `Bus ${busId} is down: gatehouse bus status says why.`);
      const left = new AbortController();
      const stopping = AbortSignal.any([closing, left.signal]);
      const events = packets(context, buses.assertKnown(busId), query, { ...caller, stopping });
      going.add(busId);
      const ended = () => void going.delete(busId);
      return streamOf(events, { left: () => left.abort(), ended });
    },
  };
}

async function* packets(
  context: Rs485Context,
  { id: bus, protocol, port, line }: Bus,
  query: TraceQuery,
  { principal, correlationId, stopping }: Caller & { stopping: AbortSignal },
): AsyncGenerator<TraceEvent, undefined> {
  const { actuations, clock } = context;
  const object = `rs485/bus/${bus}`;
  const intent = { principal, correlationId, action: 'rs485.trace', object, way: null };
  const batches = openBatches(context, bus, query, stopping);
  // One that a kill cuts short has its outcome at the next start.
  await actuations.begin(intent, query);
  try {
    yield { event: 'begin', bus, protocol, port, baudRate: line?.baudRate ?? null };
    for (let saidAt = clock.monotonic(); batches.reason() === undefined; ) {
      const event = await batches.next();
      const isSilent = event === undefined && clock.monotonic() - saidAt < HEARTBEAT_MS;
      if (isSilent) continue;
      yield event ?? { event: 'heartbeat' };
      saidAt = clock.monotonic();
    }
    yield { event: 'end', reason: batches.reason() ?? 'stopped', ...batches.totals() };
  } finally {
    await batches.end();
    const detail = { ...batches.totals(), ...(query.decrypt && { decrypted: batches.decrypted() }) };
    await actuations.end(intent, 'done', detail);
  }
  return undefined;
}

/** Fetches until there is a reason to end. */
function openBatches({ field, clock }: Rs485Context, bus: string, query: TraceQuery, stopping: AbortSignal) {
  const id = randomUUID();
  const until = clock.monotonic() + 1_000 * query.seconds;
  const { count = Number.POSITIVE_INFINITY } = query;
  let [packets, dropped, bytes, decrypted] = [0, 0, 0, 0];
  let reason: string | undefined;
  let isDown = false;
  let isOpen = false;

  async function fetch(last: boolean): Promise<Traced> {
    const data: Trace = { id, last, decrypt: query.decrypt };
    const answer = await field.execute(
      bus,
      { kind: 'trace', data: data as Plain, timeoutMs: BATCH_MS, movesNothing: true },
      NEVER,
    );
    isOpen = !last;
    const parsed = traced.safeParse(answer);
    if (parsed.data) return parsed.data;
    throw new DriverError('BAD_REPLY', `the driver of ${bus} gave no trace`);
  }

  function take(batch: Traced, last: boolean): TraceEvent | undefined {
    const taken = batch.packets.slice(0, count - packets);
    // After the last batch no one comes for what is left.
    const lost = batch.dropped + (last ? batch.left : 0);
    packets += taken.length;
    dropped += lost;
    for (const packet of taken) {
      bytes += PACKET_BYTES + packet.bytes.length;
      if (packet.decrypted) decrypted += 1;
    }
    if (taken.length === 0 && lost === 0) return undefined;
    const shown = taken.map((packet) => ({ ...packet, bytes: Buffer.from(packet.bytes).toString('hex') }));
    return { event: 'packets', dropped: batch.dropped, packets: shown };
  }

  async function interrupted(error: unknown): Promise<TraceEvent | undefined> {
    const isPassing = error instanceof DriverError && INTERRUPTIONS.includes(error.code);
    const message = error instanceof Error ? error.message : String(error);
    if (!isPassing) reason = message;
    else if (isDown) await clock.sleep(LOOK_AGAIN_MS);
    else {
      isDown = true;
      return { event: 'interrupted', reason: message };
    }
    return undefined;
  }

  return {
    reason: () => reason,
    totals: () => ({ packets, dropped }),
    /** Packets that were shown in clear. */
    decrypted: () => decrypted,
    /** undefined: nothing to send now. */
    async next(): Promise<TraceEvent | undefined> {
      const isOver = stopping.aborted ? 'stopped' : clock.monotonic() >= until ? 'time' : undefined;
      try {
        const event = take(await fetch(isOver !== undefined), isOver !== undefined);
        isDown = false;
        reason = isOver ?? (packets >= count ? 'count' : bytes >= TRACE_MAX_BYTES ? 'bytes' : undefined);
        return event;
      } catch (error) {
        reason = isOver;
        return interrupted(error);
      }
    },
    /** A host that is not asked to stop forgets it after a time. Never rejects. */
    async end(): Promise<void> {
      if (isOpen) await fetch(true).catch(() => undefined);
    },
  };
}

/** Asks for the next event when the last one was taken. */
function streamOf(
  events: AsyncGenerator<TraceEvent, undefined>,
  { left, ended }: { left(): void; ended(): void },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { value, done } = await events.next();
          if (!done) return controller.enqueue(encoder.encode(message(value)));
          ended();
          controller.close();
        } catch (error) {
          ended();
          throw error;
        }
      },
      async cancel() {
        left();
        await events.return(undefined).finally(ended);
      },
    },
    { highWaterMark: 0 },
  );
}

/** As text/event-stream has it (HTML Living Standard, 9.2). */
function message({ event, ...data }: TraceEvent): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
