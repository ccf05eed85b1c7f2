/** A simulated encoder with all that comes before its first connection, as a process of its own: HELP. */
import { createPrivateKey, type KeyObject } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type { Command, EncoderEvent } from './commands.ts';
import { openEncoder } from './encoder.ts';
import { type Device, makeFactory, openFactory } from './factory.ts';
import { type Bundle, buildBody, drawOperationalKey, openAnswer } from './registration.ts';

const HELP = `simulate encoder --data DIR --id ID [--vendor-key NAME] [--again] [--no-cards]

A simulated encoder that keeps its keys and its journal in DIR/encoders/ID, and its maker in DIR/maker. One JSON object per line:

  out   {"event": "unregistered", "root": FILE, "message": …}: it waits for the answer to its registration with that message
  in    the answer, as PUT /encoder/{id} gives it
  out   {"event": "registered"}, then what happens (commands.ts)
  in    commands (commands.ts); the end of the input ends the encoder
`;

/** Says to the gateway, and to `gatehouse simulate`, that it is no real one. */
const METADATA = { simulated: 'true' };
const SECRET = { mode: 0o600 };

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h', default: false },
    data: { type: 'string' },
    id: { type: 'string' },
    'vendor-key': { type: 'string', default: 'vendor' },
    again: { type: 'boolean', default: false },
    'no-cards': { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
  process.exit();
}
if (!values.data || !values.id) throw new Error('--data DIR and --id ID are needed');

/** Ctrl-C in a terminal reaches the whole group; the encoder's life is its standard input. */
process.on('SIGINT', () => undefined);
const { data, id } = { data: values.data, id: values.id };
const folder = join(data, 'encoders', id);
const bundleFile = join(folder, 'bundle.json');
mkdirSync(folder, { recursive: true, mode: 0o700 });

const say = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async (): Promise<unknown> => {
  const { done, value } = await lines.next();
  if (done) process.exit(0);
  return JSON.parse(value);
};

const bundle = (values.again ? undefined : kept<Bundle>(bundleFile)) ?? (await registered());
say({ event: 'registered', generation: bundle.generation, endpoint: bundle.endpoint });
const encoder = openEncoder({
  bundle,
  stateDirectory: folder,
  endlessCards: !values['no-cards'],
  report: (event: EncoderEvent) => say(event),
  crash: () => process.kill(process.pid, 'SIGKILL'),
});
for (;;) encoder.command((await next()) as Command);

async function registered(): Promise<Bundle> {
  const { root, device, key } = await identity();
  say({ event: 'unregistered', root, message: { ...buildBody(id, device, key), metadata: METADATA } });
  const answer = openAnswer((await next()) as Record<string, unknown>, id, key, values['vendor-key']);
  writeFileSync(bundleFile, JSON.stringify(answer, null, 2), SECRET);
  return answer;
}

/** The same each time, so that an answer that comes later fits. */
async function identity(): Promise<{ root: string; device: Device; key: KeyObject }> {
  const maker = join(data, 'maker');
  const root = join(maker, 'ca.pem');
  if (!existsSync(root)) await (await makeFactory({ name: 'Simulated' })).save(maker);
  // The gateway, which may be another user, reads it; the key beside it is closed.
  for (const open of [data, maker]) chmodSync(open, 0o755);
  chmodSync(root, 0o644);
  const file = join(folder, 'device.json');
  const own = kept<Device & { operational: string }>(file);
  if (own && !values.again) return { root, device: own, key: createPrivateKey(own.operational) };
  const device = own ?? (await (await openFactory(maker)).makeDevice(id));
  // A gateway takes no key twice.
  const key = drawOperationalKey();
  const operational = key.export({ type: 'pkcs8', format: 'pem' }).toString();
  writeFileSync(file, JSON.stringify({ ...device, operational }, null, 2), SECRET);
  return { root, device, key };
}

function kept<Kept>(file: string): Kept | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Kept) : undefined;
}
