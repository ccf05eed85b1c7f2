/** A simulation as a process of its own, which lives as long as its standard input. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { z } from 'zod';

export interface ProgramOptions<Schema extends z.ZodType> {
  /** From the root of the tree, such as test/simulators/bus/main.ts. */
  program: string;
  /** What is simulated, for people. */
  what: string;
  schema: Schema;
  /** `port`: what a driver opens; `control`: the address for the commands and questions of a test. Closed with the program. */
  open(plan: z.output<Schema>, stack: AsyncDisposableStack): Promise<{ port: string; control: string }>;
}

const EXIT_USAGE = 2;

export async function runSimulation<Schema extends z.ZodType>(
  options: ProgramOptions<Schema>,
): Promise<void> {
  const { schema, open } = options;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  });
  const [file] = positionals;
  if (values.help) return void process.stdout.write(helpOf(options));
  if (file === undefined) {
    process.stderr.write(helpOf(options));
    process.exitCode = EXIT_USAGE;
    return;
  }
  // Ctrl-C in a terminal reaches the whole group; the life of this process is its standard input.
  process.on('SIGINT', () => undefined);
  const input = createInterface({ input: process.stdin });
  const ended = once(input, 'close');
  const [text] = file === '-' ? await once(input, 'line') : [readFileSync(file, 'utf8')];
  const parsed = schema.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(z.prettifyError(parsed.error));
  await using stack = new AsyncDisposableStack();
  process.stdout.write(`${JSON.stringify(await open(parsed.data, stack))}\n`);
  await ended;
}

function helpOf({ program, what }: ProgramOptions<z.ZodType>): string {
  return `node ${program} PLAN.json

Simulates ${what} as the plan says (plan.ts beside it; -: the first line of standard input). Writes one line once it is up:

  {"port": "…", "control": "…"}

  port      what a driver opens
  control   where a test says what happens, and asks what did (control.ts)

It ends with its standard input (Ctrl-D in a terminal).
`;
}
