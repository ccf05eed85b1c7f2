/** The commands of program.ts that concern doors, devices, gateways and encoders. */
import type { Command } from 'commander';
import { type ClientOptions, productSegment } from './client.ts';
import { JSON_OPTION, type Kit, type Run, YES_OPTION } from './kit.ts';

type Name = 'doors' | 'rs485' | 'zgate' | 'encoder';

/** What `zgate list` shows is of its own (zgate.ts). */
export function addResources(parent: Command, zgate: Command, kit: Kit): void {
  const described = (name: Name, description: string) => parent.command(name).description(description);
  const doors = described('doors', 'Doors and their locks');
  addKind(doors, 'doors', '214', 'scheduleId=office', kit);
  addDoors(doors, kit);
  addKind(described('rs485', 'RS-485 devices'), 'rs485', 'io-17', 'relayIndex=1', kit);
  addKind(described('encoder', 'Card encoders'), 'encoder', 'desk-1', 'name="Front desk"', kit);
  addOne(zgate, 'zgate', 'Attic', 'allowedChannels=[15,20]', kit);
  addUnlock(parent, kit);
  addWriteKeys(parent, kit);
}

/** An action whose first argument is the kind; its options come before the client and the shell. */
function ofKind(name: Name, load: () => Promise<Run>, { atDaemon, shell }: Kit) {
  return atDaemon(async () => {
    const [run, { kinds }] = [await load(), await import('./resources.ts')];
    return (...given: unknown[]) => {
      const options = given.at(-3) as ClientOptions;
      return (run as (...given: unknown[]) => unknown)(kinds(productSegment(options, shell))[name], ...given);
    };
  });
}

function addKind(command: Command, name: Name, sample: string, change: string, kit: Kit): void {
  const filter = { doors: 'battery=low', rs485: 'bus=bus-1', zgate: '', encoder: 'connected=false' }[name];
  kit.example(command, `gatehouse ${name} list`, `gatehouse ${name} show ${sample}`);
  kit.example(
    kit
      .addressed(command.command('list'))
      .description('List them')
      .option(
        '-w, --where <filter...>',
        'field=value, as the filters and the sort of the list in docs/interface.md',
      )
      .option(...JSON_OPTION)
      .action(ofKind(name, async () => (await import('./resources.ts')).listItems, kit)),
    `gatehouse ${name} list --where ${filter}`,
  );
  addOne(command, name, sample, change, kit);
}

function addDoors(doors: Command, kit: Kit): void {
  kit.example(
    kit
      .addressed(doors.command('add'))
      .description('Make a door; its lock or relay is named here, or later with set')
      .argument('<name>', 'as people call it')
      .argument('[field=value...]', 'as in POST /access/doors, such as mac=00158d0001a2b3c4')
      .option(...JSON_OPTION)
      .action(ofKind('doors', async () => (await import('./resources.ts')).addDoor, kit)),
    'gatehouse doors add "Room 101"',
  );
  addUsers(doors, kit);
}

function addUsers(doors: Command, kit: Kit): void {
  const load = () => import('./door-users.ts');
  kit.example(
    kit
      .addressed(doors.command('users'))
      .description('List who has a PIN or a card on the lock of a door')
      .argument('<door>', 'its id or name')
      .option(...JSON_OPTION)
      .action(ofKind('doors', async () => (await load()).listUsers, kit)),
    'gatehouse doors users 214',
  );
  kit.example(
    kit
      .addressed(doors.command('set-user'))
      .description('Give a user of the lock of a door a PIN or a card, or have the lock not take them')
      .argument('<door>', 'its id or name')
      .argument('<user>', 'its number on the lock')
      .option('--pin', 'take a PIN from standard input')
      .option('--card', 'take the code of a card from standard input, in hex')
      .option('--disable', 'the lock keeps the codes, and does not open for them')
      .option('--enable', 'it opens for them')
      .option(...JSON_OPTION)
      .action(ofKind('doors', async () => (await load()).setUser, kit)),
    'gatehouse doors set-user 214 7 --pin < pin.txt',
  );
  kit.example(
    kit
      .addressed(doors.command('remove-user'))
      .description('Remove a user from the lock of a door')
      .argument('<door>', 'its id or name')
      .argument('<user>', 'its number on the lock')
      .option(...JSON_OPTION)
      .action(ofKind('doors', async () => (await load()).removeUser, kit)),
    'gatehouse doors remove-user 214 7',
  );
}

function addOne(command: Command, name: Name, sample: string, change: string, kit: Kit): void {
  kit.example(
    kit
      .addressed(command.command('show'))
      .description('Print one with its state, as YAML')
      .argument('<which>', 'its id or name')
      .option(...JSON_OPTION)
      .action(ofKind(name, async () => (await import('./resources.ts')).showItem, kit)),
    `gatehouse ${name} show ${sample}`,
  );
  kit.example(
    kit
      .addressed(command.command('set'))
      .description('Change fields of one; null clears')
      .argument('<which>', 'its id or name')
      .argument('<field=value...>', 'text for names and ids, else a number, true, false, null or JSON')
      .option(...JSON_OPTION)
      .action(ofKind(name, async () => (await import('./resources.ts')).setItem, kit)),
    `gatehouse ${name} set ${sample} ${change}`,
  );
}

function addUnlock(parent: Command, kit: Kit): void {
  kit.example(
    kit
      .addressed(parent.command('unlock'))
      .description('Open a door now, and say what became of it; ends with 1 unless it opened')
      .argument('<door>', 'its id or name')
      .option(...YES_OPTION)
      .option(...JSON_OPTION)
      .action(ofKind('doors', async () => (await import('./unlock.ts')).unlockDoor, kit)),
    'gatehouse unlock 214',
  );
}

function addWriteKeys(parent: Command, kit: Kit): void {
  kit.example(
    kit
      .addressed(parent.command('write-keys'))
      .description('Have an encoder write cards, and follow each; ends with 1 unless all are written')
      .argument('<encoder>', 'its id')
      .argument('[file]', 'JSON, as the body of a write request (docs/interface.md)')
      .option('-b, --block <hex...>', 'in place of a file: one card with these blocks')
      .option(
        '--request <id>',
        'the requestId: with the same again nothing is written twice (default: drawn)',
      )
      .option(...JSON_OPTION)
      .action(kit.atDaemon(async () => (await import('./write-keys.ts')).writeKeys)),
    'gatehouse write-keys desk-1 keys.json',
    'gatehouse write-keys desk-1 --block 6a1f09c2',
  );
}
