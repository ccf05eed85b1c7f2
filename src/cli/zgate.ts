/** `gatehouse zgate`: the networks of Zigbee gateways, as they were, and back. */
import type {
  ZigbeeRestored,
  ZigbeeRestoreWithdrawn,
  ZigbeeSnapshots,
} from '../resources/zgates/local-operations.ts';
import type { Client } from './client.ts';
import { askFirst, CommandFailed, printJson, type Shell, table } from './shell.ts';

export async function printZgates(options: { json?: boolean }, client: Client, shell: Shell): Promise<void> {
  const { items } = await client.call<ZigbeeSnapshots>('GET', '/local/zgates');
  if (options.json) return printJson(shell, items);
  if (items.length === 0) shell.stdout.write('The configuration has no Zigbee gateway.\n');
  for (const { deviceId, name, link, linkUp, hwId, zigbeeChannel, snapshots } of items) {
    const up = linkUp === null ? 'not configured' : linkUp ? 'up' : 'down';
    const where = `${hwId ?? 'coordinator unknown'}, channel ${zigbeeChannel ?? 'unknown'}`;
    shell.stdout.write(`${deviceId}  ${name ?? ''}\n  link ${link} ${up}, ${where}\n`);
    const rows = snapshots.map((one) => [
      `  ${one.number}`,
      one.takenAt,
      `${one.locks}`,
      one.hwId,
      `${one.zigbeeChannel ?? '-'}`,
    ]);
    const head = ['  SNAPSHOT', 'TAKEN', 'LOCKS', 'COORDINATOR', 'CHANNEL'];
    shell.stdout.write(rows.length === 0 ? '  no snapshot yet\n' : table([head, ...rows]));
  }
}

export interface RestoreOptions {
  snapshot?: number;
  withoutKeys?: boolean;
  newNetwork?: boolean;
  withdraw?: boolean;
  yes?: boolean;
  json?: boolean;
}

const WITHOUT_KEYS =
  ' Without their link keys the locks go on, but one that asks the coordinator for the network key again has to join again.';

const NEW_NETWORK =
  'The network that the coordinator carries now is lost, and with it each lock that is on it: also those of another site.';

/** Asks first: with a wrong network the gateway loses every lock. */
export async function restoreZgate(
  deviceId: string,
  options: RestoreOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const { snapshot, withoutKeys = false, newNetwork = false, yes = false, json = false } = options;
  const { items } = await client.call<ZigbeeSnapshots>('GET', '/local/zgates');
  const gateway = items.find((one) => one.deviceId === deviceId.toLowerCase());
  if (!gateway)
    throw new CommandFailed(
      `There is no Zigbee gateway ${deviceId}: gatehouse zgate list shows those there are.`,
    );
  const path = `/local/zgate/${encodeURIComponent(deviceId)}/restore`;
  if (options.withdraw) {
    const answer = await client.call<ZigbeeRestoreWithdrawn>('DELETE', path);
    if (json) return printJson(shell, answer);
    const said = answer.withdrawn ? 'Nothing is put on the coordinator any more.' : 'Nothing was wanted.';
    return void shell.stdout.write(`${said}\n`);
  }
  const which = newNetwork
    ? 'a new network'
    : snapshot === undefined
      ? 'the newest snapshot'
      : `snapshot ${snapshot}`;
  const question = `Put ${which} on the coordinator of ${gateway.name ?? gateway.deviceId}? ${newNetwork ? NEW_NETWORK : `Its locks are lost if that is another network than theirs, and one that joined later has to join again.${withoutKeys ? WITHOUT_KEYS : ''}`}`;
  await askFirst(shell, yes, question, 'Nothing was changed.');
  const body = {
    ...(snapshot !== undefined && { snapshot }),
    ...(withoutKeys && { withoutKeys }),
    ...(newNetwork && { newNetwork }),
  };
  const restored = await client.call<ZigbeeRestored>('POST', path, body);
  if (json) return printJson(shell, restored);
  const { snapshot: number, takenAt, locks } = restored;
  if (number === null)
    return void shell.stdout.write(
      'A new network is formed on the coordinator. gatehouse zgate list shows when its link is up.\n',
    );
  shell.stdout.write(
    `Snapshot ${number} of ${takenAt} (${locks} locks) goes to the coordinator. gatehouse zgate list shows when its link is up.\n`,
  );
}
