/** A simulated encoder as a process of its own: HELP. */
import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { Command, EncoderEvent, Timings } from './commands.ts';
import { openEncoder } from './encoder.ts';
import type { Bundle } from './registration.ts';

const HELP = `node test/simulators/encoder/main.ts --state DIR --bundle FILE [--timings JSON] [--no-cards] [--clock-offset-days=N]

A simulated encoder. Standard input takes commands (commands.ts), one JSON object per line; its end ends the encoder.
Standard output reports what happens, one JSON object per line.
`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    state: { type: 'string' },
    bundle: { type: 'string' },
    timings: { type: 'string', default: '{}' },
    'no-cards': { type: 'boolean', default: false },
    'clock-offset-days': { type: 'string', default: '0' },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit();
}
if (!values.state || !values.bundle) throw new Error('--state DIR and --bundle FILE are needed');

const offset = Number(values['clock-offset-days']) * 86_400_000;
if (offset !== 0) {
  const now = Date.now;
  Date.now = () => now() + offset;
}

/** Ctrl-C in a terminal reaches the whole group; the encoder's life is its standard input. */
process.on('SIGINT', () => undefined);

const encoder = openEncoder({
  bundle: JSON.parse(readFileSync(values.bundle, 'utf8')) as Bundle,
  stateDirectory: values.state,
  timings: JSON.parse(values.timings) as Partial<Timings>,
  endlessCards: !values['no-cards'],
  report(event: EncoderEvent) {
    process.stdout.write(`${JSON.stringify(event)}\n`);
    // An encoder that is going to be killed would leave nothing for the next one's start.
    if (event.event === 'connected') flushCompileCache();
  },
  crash: () => process.kill(process.pid, 'SIGKILL'),
});

createInterface({ input: process.stdin })
  .on('line', (line) => encoder.command(JSON.parse(line) as Command))
  .on('close', () => {
    process.exit(0);
  });
