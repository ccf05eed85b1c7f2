/** The commands of program.ts that concern doors, devices, gateways and encoders. */
import type { Command } from 'commander';
import type { Kit } from './bus-commands.ts';
import { type ClientOptions, openClient, productSegment } from './client.ts';
import type { Kind } from './resources.ts';
import type { Shell } from './shell.ts';

const JSON_OPTION = ['--json', 'print JSON for a program'] as const;

type Common = { json?: boolean } & ClientOptions;
type Name = 'doors' | 'rs485' | 'zgate' | 'encoder';

/** What `zgate list` shows is of its own (zgate.ts). */
export function addResources(parent: Command, zgate: Command, shell: Shell, kit: Kit): void {
  const described = (name: Name, description: string) => parent.command(name).description(description);
  const doors = described('doors', 'Doors and their locks');
  addKind(doors, 'doors', '214', 'scheduleId=office', shell, kit);
  addDoors(doors, shell, kit);
  addKind(described('rs485', 'RS-485 devices'), 'rs485', 'io-17', 'relayIndex=1', shell, kit);
  addKind(described('encoder', 'Card encoders'), 'encoder', 'desk-1', 'name="Front desk"', shell, kit);
  addOne(zgate, 'zgate', 'Attic', 'allowedChannels=[15,20]', shell, kit);
  addUnlock(parent, shell, kit);
  addWriteKeys(parent, shell, kit);
}

async function kindOf(name: Name, options: ClientOptions, shell: Shell): Promise<Kind> {
  const { kinds } = await import('./resources.ts');
  return kinds(productSegment(options, shell))[name];
}

function addKind(command: Command, name: Name, sample: string, change: string, shell: Shell, kit: Kit): void {
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
      .action(async (options: import('./resources.ts').ListOptions & Common) => {
        const { listItems } = await import('./resources.ts');
        await listItems(await kindOf(name, options, shell), options, openClient(options, shell), shell);
      }),
    `gatehouse ${name} list --where ${filter}`,
  );
  addOne(command, name, sample, change, shell, kit);
}

function addDoors(doors: Command, shell: Shell, kit: Kit): void {
  kit.example(
    kit
      .addressed(doors.command('add'))
      .description('Make a door; its lock or relay is named here, or later with set')
      .argument('<name>', 'as people call it')
      .argument('[field=value...]', 'as in POST /access/doors, such as mac=00158d0001a2b3c4')
      .option(...JSON_OPTION)
      .action(async (name: string, fields: string[], options: Common) => {
        const { addDoor } = await import('./resources.ts');
        const kind = await kindOf('doors', options, shell);
        await addDoor(kind, [name, ...fields], options, openClient(options, shell), shell);
      }),
    'gatehouse doors add "Room 101"',
  );
}

function addOne(command: Command, name: Name, sample: string, change: string, shell: Shell, kit: Kit): void {
  kit.example(
    kit
      .addressed(command.command('show'))
      .description('Print one with its state, as YAML')
      .argument('<which>', 'its id or name')
      .option(...JSON_OPTION)
      .action(async (which: string, options: Common) => {
        const { showItem } = await import('./resources.ts');
        await showItem(await kindOf(name, options, shell), which, options, openClient(options, shell), shell);
      }),
    `gatehouse ${name} show ${sample}`,
  );
  kit.example(
    kit
      .addressed(command.command('set'))
      .description('Change fields of one; null clears')
      .argument('<which>', 'its id or name')
      .argument('<field=value...>', 'text for names and ids, else a number, true, false, null or JSON')
      .option(...JSON_OPTION)
      .action(async (which: string, fields: string[], options: Common) => {
        const { setItem } = await import('./resources.ts');
        const kind = await kindOf(name, options, shell);
        await setItem(kind, [which, ...fields], options, openClient(options, shell), shell);
      }),
    `gatehouse ${name} set ${sample} ${change}`,
  );
}

function addUnlock(parent: Command, shell: Shell, kit: Kit): void {
  kit.example(
    kit
      .addressed(parent.command('unlock'))
      .description('Open a door now, and say what became of it; ends with 1 unless it opened')
      .argument('<door>', 'its id or name')
      .option('-y, --yes', 'do not ask')
      .option(...JSON_OPTION)
      .action(async (door: string, options: { yes?: boolean } & Common) => {
        const { unlockDoor } = await import('./unlock.ts');
        await unlockDoor(
          await kindOf('doors', options, shell),
          door,
          options,
          openClient(options, shell),
          shell,
        );
      }),
    'gatehouse unlock 214',
  );
}

function addWriteKeys(parent: Command, shell: Shell, kit: Kit): void {
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
      .action(
        async (
          encoder: string,
          file: string | undefined,
          options: import('./write-keys.ts').WriteKeysOptions & Common,
        ) => {
          const { writeKeys } = await import('./write-keys.ts');
          await writeKeys(encoder, file, options, openClient(options, shell), shell);
        },
      ),
    'gatehouse write-keys desk-1 keys.json',
    'gatehouse write-keys desk-1 --block 6a1f09c2',
  );
}
