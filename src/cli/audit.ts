/** `gatehouse audit verify` and `gatehouse audit export`. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { syncPath } from '../platform/database/migrate.ts';
import type { ExportPage, TakenCheckpoint, VerifiedPage } from '../services/audit/schema.ts';
import type { Client } from './client.ts';
import { CommandFailed, EXIT, printJson, type Shell, styled, unwritable } from './shell.ts';

const REASONS = {
  missing: 'is missing',
  changed: 'is not what was written',
  foreign: 'belongs to another database',
  unsigned: 'has a stored checkpoint that this site has not signed',
  unpruned: 'follows entries that are gone, and no entry says that they were removed for their age',
} as const;

/** Says whether the audit is as it was written. */
export async function verifyAudit(
  options: { checkpoint?: string; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<boolean> {
  const checkpoint = options.checkpoint === undefined ? undefined : readCheckpoint(options.checkpoint);
  let page: VerifiedPage = { through: 0, complete: false, prunedThrough: 0, oldest: null, fault: null };
  while (!page.complete) {
    page = await client.call<VerifiedPage>('POST', '/local/audit/verify', {
      after: page.through,
      ...(checkpoint !== undefined && { checkpoint }),
    });
  }
  const { fault, through, prunedThrough, oldest } = page;
  const entries = through - prunedThrough;
  if (options.json) {
    printJson(shell, fault ? { intact: false, ...fault } : { intact: true, entries, prunedThrough, oldest });
  } else if (fault) {
    const text = `✗ The audit is not intact: entry ${fault.firstBad} ${REASONS[fault.reason]}.`;
    shell.stdout.write(`${styled(shell.stdout, 'red', text)}\n`);
  } else {
    const held = checkpoint === undefined ? '' : ', as the checkpoint says';
    const since =
      prunedThrough === 0
        ? ''
        : `, from entry ${prunedThrough + 1} of ${oldest} on: those before it were removed for their age, up to a signed checkpoint`;
    const text = `✓ The audit is intact: ${entries} entries${held}${since}.`;
    shell.stdout.write(`${styled(shell.stdout, 'green', text)}\n`);
  }
  return fault === null;
}

/** The checkpoint in a file: alone, or at the end of an export. */
function readCheckpoint(file: string): string {
  let last: string;
  try {
    last = readFileSync(file, 'utf8').trimEnd().split('\n').at(-1)?.trim() ?? '';
    // A JWS has no braces.
    if (last.startsWith('{')) last = String((JSON.parse(last) as { checkpoint?: unknown }).checkpoint ?? '');
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read: ${(cause as Error).message}`, EXIT.usage, { cause });
  }
  if (last !== '') return last;
  throw new CommandFailed(`${file} does not end with a checkpoint: is it whole?`, EXIT.usage);
}

export interface ExportOptions {
  out: string;
  /** Date-times in ISO 8601. */
  from?: string;
  to?: string;
  json?: boolean;
}

/**
 * Writes JSON lines, one entry each, and the checkpoint they end with. The file appears whole and durable, or not at
 * all.
 */
export async function exportAudit(options: ExportOptions, client: Client, shell: Shell): Promise<void> {
  const file = resolve(options.out);
  const draft = `${file}.new`;
  const { checkpoint } = await client.call<TakenCheckpoint>('POST', '/local/audit/checkpoint', {});
  let entries = 0;
  const descriptor = opened(draft);
  const write = (value: unknown) => writeSync(descriptor, `${JSON.stringify(value)}\n`);
  try {
    for await (const entry of exported(options, client)) {
      if (entry.seq > (checkpoint?.seq ?? 0)) break;
      write(entry);
      entries += 1;
    }
    if (checkpoint) write(checkpoint);
    fsyncSync(descriptor);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
  syncPath(dirname(file));
  if (options.json) return printJson(shell, { file, entries, checkpoint });
  shell.stderr.write(
    `${entries} entries are in ${file}, with a checkpoint. Keep it on another machine; gatehouse audit verify --checkpoint ${options.out} then shows whether anything was taken away since.\n`,
  );
}

async function* exported(
  { from, to }: ExportOptions,
  client: Client,
): AsyncGenerator<ExportPage['items'][0]> {
  const period = Object.entries({ from, to }).map(([name, at]) =>
    at === undefined ? '' : `&${name}=${encodeURIComponent(at)}`,
  );
  let after: string | null = '0';
  while (after !== null) {
    const page: ExportPage = await client.call<ExportPage>(
      'GET',
      `/local/audit/export?after=${after}${period.join('')}`,
    );
    yield* page.items;
    after = page.next;
  }
}

function opened(file: string): number {
  try {
    return openSync(file, 'w', 0o600);
  } catch (cause) {
    throw unwritable(file, cause);
  }
}
