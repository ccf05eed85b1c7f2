/** `gatehouse simulate`: the commands of program.ts that play devices. */
import type { Command } from 'commander';
import type { Kit } from './kit.ts';

/** What a coordinator takes without routers. */
const LOCKS_MAX = 50;

export function addSimulate(parent: Command, kit: Kit): void {
  const simulate = parent
    .command('simulate')
    .description('Play devices in front of a gateway without real ones: to train people, to try software');
  kit.example(simulate, 'gatehouse simulate encoder desk-9', 'gatehouse simulate zigbee floor-1 --locks 5');
  addEncoder(simulate, kit);
  addBus(simulate, kit);
  addZigbee(simulate, kit);
}

function simulating(command: Command, { addressed }: Kit): Command {
  return addressed(command)
    .option('-d, --data <folder>', 'where keys and memories are kept between two runs', 'simulated')
    .option('--i-know', 'also on a gateway that has real devices')
    .option('--json', 'print what happens as JSON, a line each');
}

function addEncoder(parent: Command, kit: Kit): void {
  kit.example(
    simulating(parent.command('encoder'), kit)
      .description('Register a card encoder and play it until Ctrl-C; Enter puts a card on it')
      .argument('<id>', 'of the encoder')
      .option('--no-cards', 'it has no cards but those that Enter puts on it')
      .option('--message <file>', 'only write its registration message, for the console')
      .option('--credentials <file>', 'what the console has answered to that message')
      .action(kit.atDaemon(async () => (await import('./simulate.ts')).simulateEncoder)),
    'gatehouse simulate encoder desk-9',
    'gatehouse simulate encoder desk-9 --no-cards',
    'gatehouse simulate encoder desk-9 --message desk-9.json',
  );
}

function addBus(parent: Command, kit: Kit): void {
  const addresses = (text: string) => text.split(',').map((one) => kit.whole(one.trim()));
  kit.example(
    simulating(parent.command('bus'), kit)
      .description('Play an RS-485 bus and its devices until Ctrl-C')
      .argument('<link>', 'its id in the configuration, with a port such as tcp://127.0.0.1:5001')
      .option('--addresses <list>', 'of its devices, such as 1,2,3 (default: those of the link)', addresses)
      .option('--kind <product>', 'what they are, such as wago-750-do8 (default: by the protocol)')
      .action(kit.atDaemon(async () => (await import('./simulate.ts')).simulateBus)),
    'gatehouse simulate bus training --addresses 1,2,3',
  );
}

function addZigbee(parent: Command, kit: Kit): void {
  kit.example(
    simulating(parent.command('zigbee'), kit)
      .description('Play a Zigbee gateway and its locks until Ctrl-C')
      .argument('<link>', 'its id in the configuration, with a port such as tcp://127.0.0.1:5002')
      .option('-n, --locks <number>', 'how many locks ask to join', kit.wholeUpTo(LOCKS_MAX), 3)
      .action(kit.atDaemon(async () => (await import('./simulate.ts')).simulateZigbee)),
    'gatehouse simulate zigbee floor-1 --locks 5',
  );
}
