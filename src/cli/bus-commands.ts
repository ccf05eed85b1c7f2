/** `gatehouse bus` and `gatehouse osdp`: the commands of program.ts that concern RS-485 buses. */
import type { Command } from 'commander';
import { JSON_OPTION, type Kit, YES_OPTION } from './kit.ts';
import { EXIT } from './shell.ts';

/** 127 is everybody's (SIA OSDP 2.2, 5.4). */
const OSDP_HIGHEST_ADDRESS = 126;

export function addBuses(parent: Command, kit: Kit): void {
  addBus(parent.command('bus').description('RS-485 buses and what is on them'), kit);
  addOsdp(parent.command('osdp').description('OSDP devices: keys, firmware, addresses'), kit);
}

function addBus(parent: Command, kit: Kit): void {
  const { example, shell, endWith } = kit;
  example(parent, 'gatehouse bus check-profile my-relay.yaml');
  example(
    parent
      .command('check-profile')
      .description('Say every mistake in the profile of a Modbus product, with its place')
      .argument('<file>', 'or the name of one that comes with Gatehouse')
      .option(...JSON_OPTION)
      .action(async (file: string, options: { json?: boolean }) => {
        const { checkProfile } = await import('./bus.ts');
        if (!checkProfile(file, options, shell)) endWith(EXIT.usage);
      }),
    'gatehouse bus check-profile my-relay.yaml',
  );
  addBusDoctor(parent, kit);
  addBusScan(parent, kit);
  addBusTrace(parent, kit);
  addWatchdogTest(parent, kit);
}

function addWatchdogTest(parent: Command, { example, addressed, atDaemon }: Kit): void {
  example(
    addressed(parent.command('watchdog-test'))
      .description(
        'Prove that a device opens its relay when the gateway dies; first disconnect what it opens',
      )
      .argument('<device>', 'its hwId or deviceId')
      .option('-y, --yes', 'do not ask before the test')
      .option('--opened <yes|no>', 'say what was seen in the test that has just ended; none is run')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./bus-watchdog.ts')).testWatchdog)),
    'gatehouse bus watchdog-test bus-1-3',
  );
}

function addBusScan(parent: Command, { example, addressed, whole, atDaemon }: Kit): void {
  const list = (text: string) => text.split(',').map((one) => one.trim());
  example(
    addressed(parent.command('scan'))
      .description('Look for devices on a bus, also with other baud rates and parities')
      .argument('<bus>', 'id of its link in the configuration')
      .option('--from <address>', 'first address (default: the lowest of the protocol)', whole)
      .option('--to <address>', 'last address (default: the highest of the protocol)', whole)
      .option('--detect', 'try the other baud rates and parities that are usual with the protocol')
      .option('--baud-rates <list>', 'try these instead, such as 9600,19200', (text) => list(text).map(whole))
      .option('--parities <list>', 'try these instead, such as none,even,odd', list)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./bus-scan.ts')).scanBus)),
    'gatehouse bus scan bus-1 --detect',
  );
}

function addBusTrace(parent: Command, { example, addressed, whole, atDaemon }: Kit): void {
  example(
    addressed(parent.command('trace'))
      .description('Show what goes over a bus, or write it to a file for Wireshark; Ctrl-C ends it')
      .argument('<bus>', 'id of its link in the configuration')
      .option('--file <file>', 'a new pcapng file; - is standard output')
      .option('--seconds <number>', 'end after so long (default: 60)', whole)
      .option('--count <number>', 'end after so many packets', whole)
      .option('--decrypt', 'show in clear what OSDP encrypts, but for keys, cards and what is typed')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./bus-trace.ts')).traceBus)),
    'gatehouse bus trace bus-1 --seconds 10',
    'gatehouse bus trace bus-1 --file bus-1.pcapng',
    'gatehouse bus trace bus-3 --decrypt',
  );
}

function addBusDoctor(parent: Command, { example, addressed, whole, atDaemon }: Kit): void {
  example(
    addressed(parent.command('status'))
      .description('Show how the buses do')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./bus-doctor.ts')).printBuses)),
    'gatehouse bus status',
  );
  example(
    addressed(parent.command('doctor'))
      .description('Ask every address of a bus, and say what to check; ends with 1 if something is bad')
      .argument('<bus>', 'id of its link in the configuration')
      .option('--from <address>', 'first address (default: the lowest of the protocol)', whole)
      .option('--to <address>', 'last address (default: the highest of the protocol)', whole)
      .option('--repeats <number>', 'how often each device is asked (default: 20)', whole)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./bus-doctor.ts')).examineBus)),
    'gatehouse bus doctor bus-1 --from 1 --to 32',
  );
}

function addOsdp(parent: Command, kit: Kit): void {
  const { example, addressed, whole, atDaemon } = kit;
  example(
    addressed(parent.command('pair'))
      .description('Give a device its key; stand at it, for who listens on the bus meanwhile learns the key')
      .argument('<bus>', 'id of its link in the configuration')
      .argument('<address>', 'as set at the device', whole)
      .option('--seconds <number>', 'how long it may take (default: 60)', whole)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./osdp.ts')).pairDevice)),
    'gatehouse osdp pair bus-3 0',
  );
  example(parent, 'gatehouse osdp pair bus-3 0');
  addOsdpDevice(parent, kit);
}

function addOsdpDevice(parent: Command, { example, addressed, whole, wholeUpTo, atDaemon }: Kit): void {
  const device = ['<device>', 'its hwId or deviceId'] as const;
  example(
    addressed(parent.command('firmware'))
      .description('Give a device new firmware; started again after a loss it goes on where it was')
      .argument(...device)
      .argument('<file>', 'name of a file in firmwareDirectory, with its manifest beside it')
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./osdp.ts')).updateFirmware)),
    'gatehouse osdp firmware 0a4748-1-4711 io-2.1.0.bin',
  );
  example(
    addressed(parent.command('set'))
      .description('Give a device another address or baud rate, and say where it answers then')
      .argument(...device)
      .option('--address <number>', `0 to ${OSDP_HIGHEST_ADDRESS}`, wholeUpTo(OSDP_HIGHEST_ADDRESS))
      .option('--baud <rate>', 'with another one than its bus it is not heard until the bus has that', whole)
      .option(...YES_OPTION)
      .option(...JSON_OPTION)
      .action(atDaemon(async () => (await import('./osdp.ts')).readdressDevice)),
    'gatehouse osdp set 0a4748-1-4711 --address 9',
  );
}
