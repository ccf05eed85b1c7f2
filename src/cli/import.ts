/** `gatehouse import`: shows what a site's file would change, asks, and has the daemon write it. */
import type { Json } from '../platform/import-plan.ts';
import type { Problem } from '../platform/yaml/problem.ts';
import { readSite, type SiteFile } from '../resources/site-import/site-file.ts';
import { type Client, Refused, runJob } from './client.ts';
import { askFirst, printJson, type Shell, styled } from './shell.ts';

/** The answer of POST /site/plan. */
interface Plan {
  counts: { added: number; changed: number; unchanged: number; leftAlone: number };
  /** Of what is added and changed. */
  digest: string;
  changes: {
    resource: string;
    id: string;
    name: string | null;
    change: 'added' | 'changed' | 'unchanged' | 'left alone';
    fields: { field: string; from: Json; to: Json }[];
  }[];
  /** Each with a JSON pointer into what was sent. */
  warnings: { path: string; message: string }[];
}

/** What the job reports at its end; `changes` are those of the plan. */
interface Result extends Omit<Plan, 'changes'> {
  written: boolean;
}

export interface ImportOptions {
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
}

/** Longest value that is shown; options of a door can be long. */
const VALUE_SHOWN_MAX = 120;

export async function importSite(
  file: string,
  options: ImportOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const source = readSite(file);
  const planned = await placed(source, () =>
    client.call<Plan>('POST', '/site/plan', { document: source.site }),
  );
  const open = planned.counts.added + planned.counts.changed;
  if (options.json !== true) {
    show(planned, shell);
    showWarnings(planned, source, file, shell);
  }
  if (open > 0 && options.dryRun !== true) {
    const question = `Write ${open === 1 ? 'this change' : `these ${open} changes`}?`;
    await askFirst(shell, options.yes, question, 'Nothing was written.');
    const written = await write(source, planned.digest, client, shell);
    if (options.json) return printJson(shell, { ...planned, ...written });
    shell.stdout.write(`Written: ${summary(written)}.\n`);
    return;
  }
  if (options.json) return printJson(shell, { ...planned, written: false });
  shell.stdout.write(open === 0 ? 'Nothing to do.\n' : 'Nothing was written: this was a dry run.\n');
}

/** What was shown, and nothing else: somebody may have changed a door since. */
async function write(source: SiteFile, digest: string, client: Client, shell: Shell): Promise<Result> {
  const order = {
    path: '/site/import',
    body: { document: source.site, digest },
    cancelled: 'The import was cancelled: what it had written stays. Import again to have the rest written.',
    failed: 'The import was not completed',
  };
  return (await placed(source, () => runJob(order, client, shell))) as Result;
}

/** What the daemon finds wrong with the document is shown where it is in the file. */
async function placed<Answer>(
  { contradictions, failed }: SiteFile,
  call: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    const details = error instanceof Refused ? error.details : [];
    const inFile = details.filter(({ path }) => path.startsWith('/document/')).map(problemOf);
    // The file's own come with the line of the other one, and without a daemon too.
    const own = new Set(contradictions.map(({ path }) => path.join('/')));
    const problems = [...contradictions, ...inFile.filter(({ path }) => !own.has(path.join('/')))];
    if (problems.length === 0) throw error;
    throw failed(problems);
  }
}

const problemOf = ({ path, message }: { path: string; message: string }): Problem => ({
  path: stepsOf(path),
  message,
});

/** `/document/doors/3/groupId` → doors, 3, groupId. */
function stepsOf(pointer: string): PropertyKey[] {
  return pointer
    .split('/')
    .slice(2)
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

function show({ changes, counts }: Plan, { stdout }: Shell): void {
  for (const { resource, id, name, change, fields } of changes) {
    if (change !== 'added' && change !== 'changed') continue;
    const title = `${resource} ${id}${name === null || name === id ? '' : ` (${name})`}`;
    const line = change === 'added' ? styled(stdout, 'green', `+ ${title}`) : `~ ${title}`;
    stdout.write(`${line}\n`);
    for (const { field, from, to } of fields) {
      const before = change === 'added' ? '' : `${shown(from)} → `;
      stdout.write(`    ${field}: ${before}${shown(to)}\n`);
    }
  }
  if (counts.leftAlone > 0) {
    const what = counts.leftAlone === 1 ? '1 entry that is' : `${counts.leftAlone} entries that are`;
    stdout.write(`${what} on the site and not in the file: left alone, nothing is ever deleted.\n`);
  }
}

/** At their places in the file, as mistakes are shown. */
function showWarnings({ warnings }: Plan, { failed }: SiteFile, file: string, { stdout }: Shell): void {
  for (const { line, column, message } of failed(warnings.map(problemOf)).mistakes)
    stdout.write(`${styled(stdout, 'yellow', '!')} ${file}:${line}:${column}: ${message}\n`);
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > VALUE_SHOWN_MAX ? `${text.slice(0, VALUE_SHOWN_MAX)}…` : text;
}

function summary({ counts }: Result): string {
  return `${counts.added} added, ${counts.changed} changed, ${counts.unchanged} unchanged`;
}
