/** `gatehouse bus trace`: what goes over a bus, as lines or as a file for Wireshark. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { VERSION } from '../app/version.ts';
import type { TraceEvent } from '../resources/rs485/bus-schema.ts';
import type { Client } from './client.ts';
import { streamedEvents } from './event-stream.ts';
import { enhancedPacket, interfaceDescription, interfaceStatistics, sectionHeader } from './pcapng.ts';
import { CommandFailed, type Shell, unwritable } from './shell.ts';

export interface TraceOptions {
  /** A pcapng file, or - for standard output. */
  file?: string;
  seconds?: number;
  count?: number;
  decrypt?: boolean;
  json?: boolean;
}

type Data<Name extends TraceEvent['event']> = Omit<Extract<TraceEvent, { event: Name }>, 'event'>;

/** What becomes of a trace. */
interface Sink {
  begin(event: Data<'begin'>): Promise<void>;
  packets(event: Data<'packets'>): Promise<void>;
  interrupted(event: Data<'interrupted'>): Promise<void>;
  /** Also when the daemon went away. */
  end(totals: Data<'end'>): Promise<void>;
}

/** Until it ends or a signal comes; what was traced by then is kept. Throws when it ended too early. */
export async function traceBus(
  bus: string,
  options: TraceOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const query = new URLSearchParams();
  for (const name of ['seconds', 'count', 'decrypt'] as const)
    if (options[name] !== undefined) query.set(name, String(options[name]));
  const sink = sinkOf(options, shell);
  const totals = { packets: 0, dropped: 0 };
  let reason: string | undefined;
  let begun = false;
  try {
    const path = `/local/rs485/buses/${encodeURIComponent(bus)}/trace?${query}`;
    for await (const { name, data } of streamedEvents(client.stream(path, shell.stopping))) {
      const event = { event: name, ...data } as TraceEvent;
      if (event.event === 'begin') await sink.begin(event);
      begun = true;
      if (event.event === 'interrupted') await sink.interrupted(event);
      if (event.event === 'end') reason = event.reason;
      if (event.event === 'end') totals.dropped = event.dropped;
      if (event.event !== 'packets') continue;
      totals.packets += event.packets.length;
      totals.dropped += event.dropped;
      await sink.packets(event);
    }
  } catch (error) {
    if (shell.stopping.aborted) reason = 'stopped';
    else if (!begun || error instanceof CommandFailed) throw error;
  }
  if (begun) await sink.end({ reason: reason ?? 'lost', ...totals });
  if (reason === undefined) throw new CommandFailed('The daemon went away before the trace was over.');
  if (!['time', 'count', 'bytes', 'stopped'].includes(reason))
    throw new CommandFailed(`The trace has ended: ${reason}.`);
}

function sinkOf({ file, json = false }: TraceOptions, shell: Shell): Sink {
  if (file !== undefined) return toFile(file, json, shell);
  return json ? asJson(shell) : asLines(shell);
}

function toFile(file: string, json: boolean, shell: Shell): Sink {
  const isPipe = file === '-';
  let since = 0;
  let unwritten: string | undefined;
  let out: Writable = shell.stdout;
  let failure: Error | undefined;
  const write = async (bytes: Buffer) => {
    if (failure) throw unwritable(file, failure);
    if (!out.write(bytes)) await once(out, 'drain').catch((error) => Promise.reject(unwritable(file, error)));
  };
  return {
    async begin({ bus, protocol, port, baudRate }) {
      if (!isPipe) out = await opened(file);
      out.on('error', (error) => {
        failure = error;
      });
      since = microseconds(shell);
      const description = port === null ? protocol : `${protocol} on ${port}`;
      await write(sectionHeader(`Gatehouse ${VERSION}`));
      await write(interfaceDescription({ name: bus, description, speed: baudRate }));
    },
    async packets({ packets, dropped }) {
      let lost = dropped;
      for (const { at, sent, bytes, ...marks } of packets) {
        const comment = [...(unwritten ? [unwritten] : []), ...notesOf(marks)].join('; ');
        const packet = { at, sent, bytes: Buffer.from(bytes, 'hex'), dropped: lost };
        await write(enhancedPacket({ ...packet, ...(comment !== '' && { comment }) }, since));
        unwritten = undefined;
        lost = 0;
      }
    },
    async interrupted({ reason }) {
      unwritten = `before this the bus was down: ${reason}`;
    },
    async end({ packets, dropped, reason }) {
      const end = microseconds(shell);
      await write(interfaceStatistics({ start: since, end, received: packets + dropped, dropped }));
      if (!isPipe) await closed(out);
      if (isPipe) return;
      if (json) shell.stdout.write(`${JSON.stringify({ file, packets, dropped, reason })}\n`);
      else shell.stdout.write(`${summary(packets, dropped)} in ${file}\n`);
    },
  };
}

/** Cards and keypads may be in it: no one else reads it. */
async function opened(file: string): Promise<Writable> {
  const out = createWriteStream(file, { flags: 'wx', mode: 0o600 });
  try {
    await once(out, 'open');
    return out;
  } catch (error) {
    throw unwritable(file, error);
  }
}

async function closed(out: Writable): Promise<void> {
  out.end();
  await once(out, 'finish');
}

function asJson({ stdout }: Shell): Sink {
  const write = async (event: object) => void stdout.write(`${JSON.stringify(event)}\n`);
  return {
    begin: write,
    async packets({ packets, dropped }) {
      if (dropped > 0) await write({ dropped });
      for (const packet of packets) await write(packet);
    },
    interrupted: write,
    end: write,
  };
}

function asLines({ stdout, stderr }: Shell): Sink {
  return {
    async begin({ bus, protocol, port }) {
      stderr.write(`${bus}: ${protocol}${port === null ? '' : ` on ${port}`}; > sent, < heard\n`);
    },
    async packets({ packets, dropped }) {
      if (dropped > 0) stdout.write(`${dropped} packets lost\n`);
      for (const { at, sent, bytes, ...marks } of packets) {
        const octets = bytes.match(/../g)?.join(' ') ?? '';
        const notes = notesOf(marks).join('; ');
        stdout.write(`${clockTime(at)} ${sent ? '>' : '<'} ${octets}${notes && `  (${notes})`}\n`);
      }
    },
    async interrupted({ reason }) {
      stderr.write(`The bus is down: ${reason}\n`);
    },
    async end({ packets, dropped }) {
      stderr.write(`${summary(packets, dropped)}\n`);
    },
  };
}

/** What no one is to take for the wire. */
function notesOf({ concealed, decrypted }: { concealed: boolean; decrypted: boolean }): string[] {
  return [
    ...(decrypted ? ['decrypted: on the wire this is encrypted, under another length and check'] : []),
    ...(concealed ? [decrypted ? 'a card or what was typed is blanked' : 'a key is blanked'] : []),
  ];
}

function summary(packets: number, dropped: number): string {
  return dropped === 0 ? `${packets} packets` : `${packets} packets, ${dropped} lost`;
}

/** "07:09:00.123456", UTC, as in the log. */
function clockTime(at: number): string {
  const rest = String(at % 1_000).padStart(3, '0');
  return `${new Date(Math.floor(at / 1_000)).toISOString().slice(11, 23)}${rest}`;
}

const microseconds = ({ clock }: Shell) => 1_000 * clock.now();
