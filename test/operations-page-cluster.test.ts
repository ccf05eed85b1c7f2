/** docs/operations.md, A standby that takes over: from its first step to its last, with three NATS servers and two gateways. */
import { appendFileSync, copyFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { type Answers, atTerminal, HAS_TERMINAL } from './at-terminal.ts';
import { opensslIsMissing } from './drivers/encoder/certificates.ts';
import { freePorts } from './nats-cluster.ts';
import { blocksBelow, blockWith } from './operations-page.ts';
import { type Machine, openMachine, type StandIn } from './operations-page-machine.ts';
import { natsMissing } from './services/events/nats.ts';

const SERVERS = ['nats-1', 'nats-2', 'nats-3'];
const CONTROLLERS = ['lobby-a', 'lobby-b'];
const PATIENCE = { timeout: 60_000, interval: 200 };
const YES: Answers = [[/\[y\/N\]/, 'y']];
const STATUS = 'sudo gatehouse cluster status';
const DOORS = 'sudo gatehouse doors list';

async function answered(one: Machine, block: string): Promise<string> {
  const { code, output } = await atTerminal(one.typing(block), YES);
  expect(code, output).toBe(0);
  return output;
}

const says = (one: Machine, command: string, text: string) =>
  vi.waitFor(async () => expect(await one.typed(command)).toContain(text), PATIENCE);

/** What is typed in an editor; `back` types it again. */
function takenOut({ config }: Machine): { back(): void } {
  const text = readFileSync(config, 'utf8');
  const [section = ''] = /^cluster:\n(?: .*\n)+/m.exec(text) ?? [];
  expect(section).toContain('caFile:');
  writeFileSync(config, text.replace(section, ''));
  return { back: () => appendFileSync(config, section) };
}

/** Each machine in a folder of its own, at ports of its own. */
async function openSite() {
  const [clients = [], routes = []] = await freePorts(2);
  const everywhere: StandIn[] = [
    // What the name of a machine leads to here.
    ['DNS:$name.example', 'IP:127.0.0.1'],
    ...SERVERS.flatMap((name, index): StandIn[] => [
      [`${name}.example:4222`, `127.0.0.1:${clients[index]}`],
      [`${name}.example:6222`, `127.0.0.1:${routes[index]}`],
    ]),
  ];
  return {
    own: openMachine(everywhere),
    servers: SERVERS.map((name, index) =>
      openMachine([
        ...everywhere,
        ['NAME=nats-1', `NAME=${name}`],
        ['0.0.0.0:4222', `127.0.0.1:${clients[index]}`],
        ['0.0.0.0:6222', `127.0.0.1:${routes[index]}`],
      ]),
    ),
    controllers: CONTROLLERS.map((name) => openMachine([...everywhere, ['NAME=lobby-a', `NAME=${name}`]])),
  };
}

const nats = (servers: readonly Machine[], verb: 'start' | 'stop') =>
  Promise.all(servers.map((one) => one.typed(`systemctl ${verb} nats-server`)));

/** A first installation, and an archive of it on a stick. */
async function install(one: Machine): Promise<void> {
  await one.typed(blockWith('CN=Trial vendor'));
  await one.typed(blockWith('names: [gatehouse.hotel.example]'));
  await one.typed(blockWith('systemctl start gatehouse\nsudo gatehouse doctor'));
  await one.typed('sudo gatehouse doors add "Room 101"');
  await one.typed(`${blockWith('gatehouse backup key --out')}\n${blockWith('recipients: [$PUBLIC_KEY]')}`);
  const [make = ''] = blockWith('backup --to /media/stick').split('\n');
  await one.typed(make);
}

/** The stick and the key of its archive are carried there. */
async function restoreFrom(from: Machine, to: Machine): Promise<void> {
  const stick = join(from.folder, 'media/stick');
  cpSync(stick, join(to.folder, 'media/stick'), { recursive: true });
  copyFileSync(join(from.home, 'backup-key.txt'), join(to.home, 'backup-key.txt'));
  const [archive = ''] = readdirSync(stick);
  const restore = blockWith('install -d -m 700 -o gatehouse').replace(
    'gatehouse-20270101T032000Z.age',
    archive,
  );
  expect(await answered(to, restore)).toContain('is valid');
}

it.skipIf(natsMissing || opensslIsMissing || !HAS_TERMINAL)(
  'leads from blank machines to a takeover and back, and back from NATS that was lost, as the page says',
  { timeout: 400_000 },
  async () => {
    const [certificates, serve, join_, begin, follow, rehearse, alone, back] = blocksBelow(
      'A standby that takes over',
    ) as [string, string, string, string, string, string, string, string];
    const { own, servers, controllers } = await openSite();
    const [a, b] = controllers as [Machine, Machine];

    await own.typed(certificates);
    for (const [names, machines] of [
      [SERVERS, servers],
      [CONTROLLERS, controllers],
    ] as const)
      for (const [index, { home }] of machines.entries())
        for (const file of ['nats-ca.pem', `${names[index]}.pem`, `${names[index]}.key`])
          copyFileSync(join(own.home, file), join(home, file));
    await Promise.all([...servers.map((one) => one.typed(serve)), install(a)]);
    await restoreFrom(a, b);
    for (const one of controllers) expect(await one.typed(join_)).toContain('is valid');
    await says(b, STATUS, 'no gateway is active');

    expect(await answered(a, begin)).toContain('lobby-a is active (epoch 1)');
    await b.typed(follow);
    await says(b, STATUS, 'lobby-b follows and takes over when lobby-a is gone');

    expect(await b.typed(rehearse)).toContain('lobby-b is active (epoch 2)');
    await says(b, DOORS, 'Room 101');
    await says(b, STATUS, 'lobby-a follows and takes over when lobby-b is gone');
    expect(await a.typed(rehearse)).toContain('lobby-a is active (epoch 3)');
    await says(b, STATUS, 'lobby-b follows and takes over when lobby-a is gone');

    await nats(servers, 'stop');
    await b.typed('systemctl stop gatehouse');
    const section = takenOut(a);
    await expect(a.typed('systemctl restart gatehouse')).rejects.toThrow();
    expect(readFileSync(join(a.folder, 'gatehouse.log'), 'utf8')).toContain(
      'the other gateway may be active',
    );
    await answered(a, alone);
    await a.typed('sudo gatehouse doors add "Room 102"');
    await nats(servers, 'start');
    section.back();
    await a.typed(back);
    await says(a, STATUS, 'lobby-a is active (epoch 1004)');
    await b.typed(follow);
    await says(b, STATUS, 'lobby-b follows and takes over when lobby-a is gone');

    await a.typed('systemctl stop gatehouse');
    await says(b, STATUS, 'lobby-b is active (epoch 1005)');
    await says(b, DOORS, 'Room 102');
    await a.typed(follow);
    await says(a, STATUS, 'lobby-a follows and takes over when lobby-b is gone');

    await nats(servers, 'stop');
    await b.typed('systemctl stop gatehouse');
    const ofA = takenOut(a);
    await answered(a, alone);
    expect(await a.typed(DOORS)).toContain('Room 102');
    expect(await a.typed('sudo gatehouse audit verify')).toContain('✓');
    await a.typed('sudo gatehouse doors add "Room 103"');
    await nats(servers, 'start');
    ofA.back();
    await a.typed(back);
    await says(a, STATUS, 'lobby-a is active (epoch 2006)');
    await says(a, DOORS, 'Room 103');
  },
);
