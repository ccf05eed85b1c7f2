/**
 * A simulated Zigbee network as a process of its own: `node test/simulators/zigbee/main.ts PLAN.json` (plan.ts; `-`: the
 * first line of standard input). Tells `{"port": …, "control": …}` in a line when it is up (what control takes is in
 * control.ts), and ends with its standard input.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { openControl } from './control.ts';
import { planSchema } from './plan.ts';
import { openSimulation } from './simulation.ts';

const [file] = parseArgs({ allowPositionals: true }).positionals;
if (file === undefined) throw new Error('the file of a plan is needed, or - for standard input');

/** Ctrl-C in a terminal reaches the whole group; the network's life is its standard input. */
process.on('SIGINT', () => undefined);

const input = createInterface({ input: process.stdin });
const ended = once(input, 'close');
const [text] = file === '-' ? await once(input, 'line') : [readFileSync(file, 'utf8')];
const parsed = planSchema.safeParse(JSON.parse(text));
if (!parsed.success) throw new Error(z.prettifyError(parsed.error));

await using stack = new AsyncDisposableStack();
const simulation = stack.use(await openSimulation(parsed.data));
const control = stack.use(await openControl(simulation));
process.stdout.write(`${JSON.stringify({ port: simulation.port, control: control.url })}\n`);
await ended;
