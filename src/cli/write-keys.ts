/** `gatehouse write-keys`: has an encoder write cards, and follows each of them. */
import { randomUUID } from 'node:crypto';
import { readText } from '../platform/yaml/yaml-file.ts';
import type { WriteRequestStatus } from '../resources/writes/schema.ts';
import type { Client } from './client.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

const FILE_MAX_BYTES = 256 * 1_024;
/** Often enough to see each step. */
const LOOK_MS = 250;

type Entry = WriteRequestStatus['entries'][number];
const WORDS: Readonly<Record<Entry['status'], string>> = {
  queued: 'waits',
  started: 'is next',
  cardRequested: 'put it on the encoder',
  cardDetected: 'is on the encoder',
  writing: 'is being written: leave it there',
  written: 'is written',
  failed: 'was not written',
  cancelled: 'was cancelled',
  expired: 'was not written in time',
  unknown: 'may have been written, which is not known: read it before it is used',
};

export interface WriteKeysOptions {
  /** Of one card, hexadecimal; in place of a file. */
  block?: string[];
  request?: string;
  json?: boolean;
}

/** Ctrl-C cancels: the card in hand is finished, and its outcome is printed. */
export async function writeKeys(
  encoderId: string,
  file: string | undefined,
  options: WriteKeysOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const body = bodyOf(file, options);
  const requestId = options.request ?? `cli-${randomUUID()}`;
  const path = `/encoder/${encodeURIComponent(encoderId)}/write-request/${encodeURIComponent(requestId)}`;
  let status = await client.call<WriteRequestStatus>('PUT', path, body);
  let isCancelled = false;
  let printed: string[] = [];
  for (;;) {
    if (!options.json) printed = print(status, printed, shell);
    if (status.position === null) break;
    const signal = isCancelled ? undefined : shell.stopping;
    if (!signal?.aborted) await shell.clock.sleep(LOOK_MS, signal).catch(() => {});
    if (shell.stopping.aborted && !isCancelled) {
      isCancelled = true;
      shell.stderr.write('Cancelling: the card in hand is finished.\n');
      await client.call('DELETE', path);
    }
    status = await client.call<WriteRequestStatus>('GET', path);
  }
  if (options.json) printJson(shell, status);
  if (status.status !== 'written')
    throw new CommandFailed(`Not every card was written: the request ${requestId} is ${status.status}.`);
}

/** A line for each card that has come further. Returns the lines of all cards. */
function print({ entries }: WriteRequestStatus, before: readonly string[], { stdout }: Shell): string[] {
  return entries.map(({ keyId, status, error }, index) => {
    const reason = error ? ` (${error.code}${error.message ? `: ${error.message}` : ''})` : '';
    const line = `card ${index + 1} of ${entries.length}, key ${keyId}: ${WORDS[status]}${reason}`;
    if (line !== before[index] && status !== 'queued') stdout.write(`${line}\n`);
    return line;
  });
}

function bodyOf(file: string | undefined, { block: blocks }: WriteKeysOptions): unknown {
  if (file === undefined && blocks) return { data: [{ keyId: randomUUID(), blocks }] };
  if (file === undefined || blocks)
    throw new CommandFailed('Name either a file with write requests, or --block.', EXIT.usage);
  const text = readText(file, 'the write request', FILE_MAX_BYTES);
  try {
    return JSON.parse(text);
  } catch {
    // The text holds keys: none of it is shown.
    throw new CommandFailed(
      `${file} is no JSON. Expected {"data": [{"keyId": "…", "blocks": ["…"]}]}.`,
      EXIT.usage,
    );
  }
}
