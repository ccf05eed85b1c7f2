/** `gatehouse events tail`: what happens, as it happens. */
import type { Client } from './client.ts';
import { type StreamedEvent, streamedEvents } from './event-stream.ts';
import { CommandFailed, type Shell, styled } from './shell.ts';
import { safeJson } from './terminal-text.ts';

/** `after` the last event seen, until a signal. Throws CommandFailed when the daemon ends it, with how to go on. */
export async function tailEvents(
  options: { after?: string; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const query = options.after === undefined ? '' : `?after=${encodeURIComponent(options.after)}`;
  const nameOf = openNames(client);
  let last = options.after;
  let reason = 'the daemon went away';
  try {
    for await (const event of streamedEvents(client.stream(`/events${query}`, shell.stopping))) {
      last = event.id ?? last;
      if (event.name === 'end') reason = String(event.data.reason);
      else await show(event, options, shell, nameOf);
    }
  } catch (error) {
    if (shell.stopping.aborted) return;
    if (error instanceof CommandFailed) throw error;
  }
  const goOn = last === undefined ? '' : ` --after ${last}`;
  throw new CommandFailed(`The stream has ended: ${reason}. Go on with: gatehouse events tail${goOn}`);
}

async function show(
  { name, id, data }: StreamedEvent,
  { json }: { json?: boolean },
  shell: Shell,
  nameOf: NameOf,
): Promise<void> {
  const { stdout, stderr } = shell;
  if (name === 'hello') {
    // Else a quiet site looks like a command that hangs.
    if (!json && stderr.isTTY) stderr.write('Waiting for what happens next; Ctrl-C ends it.\n');
  } else if (name === 'reset') {
    if (json) {
      stdout.write(`${safeJson({ id, reset: data })}\n`);
      return;
    }
    stderr.write(`Events before ${String(data.cursor)} are not kept any more (${String(data.reason)}).\n`);
  } else if (name === undefined) {
    stdout.write(json ? `${safeJson({ id, event: data })}\n` : line(data, await nameOf(data), shell));
  }
}

/** "2026-11-21T07:09:00.000Z  encoder.write.written  encoders/desk-1 (Front desk)  requestId=r-1 …" */
function line(
  { time, type, source, data }: Record<string, unknown>,
  name: string | undefined,
  { stdout }: Shell,
): string {
  const what = String(type).replace(/^gatehouse\.|\.v\d+$/g, '');
  const whose = `${placeOf(source)}${name === undefined ? '' : ` (${shownName(name)})`}`;
  const facts = Object.entries(data ?? {}).map(([name, value]) => `${name}=${plain(value)}`);
  return `${String(time)}  ${styled(stdout, 'bold', what)}  ${whose}  ${facts.join(' ')}\n`;
}

/** The source of an event, below its system. */
function placeOf(source: unknown): string {
  return String(source).replace(/^\/systems\/[^/]+\//, '');
}

type NameOf = (event: Record<string, unknown>) => Promise<string | undefined>;

/** Names asked for are kept for so many things, then all are asked for again. */
const NAMES_MAX = 1_000;

/** What people call the thing that an event is of; an id says nothing to them. */
function openNames(client: Client): NameOf {
  const known = new Map<string, string | undefined>();
  return async ({ source, type }) => {
    const place = placeOf(source);
    // The thing may have been given another name, or was removed: it is asked for again with each change of its connection.
    if (String(type).includes('.connection.') || known.size >= NAMES_MAX) known.delete(place);
    if (known.size >= NAMES_MAX) known.clear();
    if (!known.has(place)) {
      const path = place.split('/').map(encodeURIComponent).join('/');
      const named = await client
        .call<{ name: string | null }>('GET', `/local/name/${path}`)
        .catch(() => undefined);
      known.set(place, named?.name ?? undefined);
    }
    return known.get(place);
  };
}

/** Without what a terminal would obey. */
function shownName(name: string): string {
  return name.replaceAll(/\p{Cc}/gu, '\uFFFD');
}

/** What devices say may hold anything, control sequences of a terminal included. */
function plain(value: unknown): string {
  return typeof value === 'string' && /^[\w.:-]+$/.test(value) ? value : safeJson(value);
}
