/** `gatehouse cluster`: commands of program.ts. */
import type { Command } from 'commander';
import { CONFIG_OPTION, JSON_OPTION, type Kit, YES_OPTION } from './kit.ts';

export function addCluster(cluster: Command, { example, here }: Kit): void {
  example(
    cluster
      .command('status')
      .description('Which gateway is active, and whether the other one could take over')
      .option(...CONFIG_OPTION)
      .option(...JSON_OPTION)
      .action(here(async () => (await import('./cluster.ts')).showCluster)),
    'gatehouse cluster status',
  );
  example(
    cluster
      .command('promote')
      .description('Make this gateway the active one; the other lets go first, and is the standby then')
      .option(
        '--force',
        'the other gateway is switched off: do not ask it. Also without NATS, once the section cluster is taken out of the configuration',
      )
      .option(...CONFIG_OPTION)
      .option(...YES_OPTION)
      .action(here(async () => (await import('./cluster.ts')).promote)),
    'gatehouse cluster promote',
  );
  example(
    cluster
      .command('demote')
      .description('Have the standby take over from this gateway')
      .option(...CONFIG_OPTION)
      .action(here(async () => (await import('./cluster.ts')).demote)),
    'gatehouse cluster demote',
  );
}
