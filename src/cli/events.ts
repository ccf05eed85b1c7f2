/** `gatehouse events tail`: what happens, as it happens. */
import type { Client } from './client.ts';
import { type Told, toldEvents } from './event-stream.ts';
import { CommandFailed, type Shell, styled } from './shell.ts';

export interface TailOptions {
  /** Id of the last event seen. */
  after?: string;
  json?: boolean;
}

/** Until a signal. Throws CommandFailed when the daemon ends it, with how to go on. */
export async function tailEvents(options: TailOptions, client: Client, shell: Shell): Promise<void> {
  const query = options.after === undefined ? '' : `?after=${encodeURIComponent(options.after)}`;
  let last = options.after;
  let reason = 'the daemon went away';
  try {
    for await (const told of toldEvents(client.stream(`/events${query}`, shell.stopping))) {
      last = told.id ?? last;
      if (told.name === 'end') reason = String(told.data.reason);
      else show(told, options, shell);
    }
  } catch (error) {
    if (shell.stopping.aborted) return;
    if (error instanceof CommandFailed) throw error;
  }
  const goOn = last === undefined ? '' : ` --after ${last}`;
  throw new CommandFailed(`The stream has ended: ${reason}. Go on with: gatehouse events tail${goOn}`);
}

function show({ name, id, data }: Told, { json }: TailOptions, shell: Shell): void {
  const { stdout, stderr } = shell;
  if (name === 'hello') {
    // Else a quiet site looks like a command that hangs.
    if (!json && stderr.isTTY) stderr.write('Waiting for what happens next; Ctrl-C ends it.\n');
  } else if (name === 'reset') {
    if (json) return void stdout.write(`${JSON.stringify({ id, reset: data })}\n`);
    stderr.write(`Events before ${String(data.cursor)} cannot be told any more (${String(data.reason)}).\n`);
  } else if (name === undefined) {
    stdout.write(json ? `${JSON.stringify({ id, event: data })}\n` : line(data, shell));
  }
}

/** "2026-11-21T07:09:00.000Z  encoder.write.written  encoders/desk-1  requestId=r-1 …" */
function line({ time, type, source, data }: Record<string, unknown>, { stdout }: Shell): string {
  const what = String(type).replace(/^gatehouse\.|\.v\d+$/g, '');
  const whose = String(source).replace(/^\/systems\/[^/]+\//, '');
  const facts = Object.entries(data ?? {}).map(([name, value]) => `${name}=${plain(value)}`);
  return `${String(time)}  ${styled(stdout, 'bold', what)}  ${whose}  ${facts.join(' ')}\n`;
}

/** What devices say may hold anything, control sequences of a terminal included. */
function plain(value: unknown): string {
  return typeof value === 'string' && /^[\w.:-]+$/.test(value) ? value : JSON.stringify(value);
}
