/** What `gatehouse cluster` does: it reads and writes the bucket itself, so that it works beside the active gateway, the standby, and none. */
import { join } from 'node:path';
import type { Clock } from '../platform/clock.ts';
import { readConfig } from '../platform/config/config-file.ts';
import { JetStreamError } from '../platform/nats/jetstream.ts';
import { decodeMessage } from '../services/cluster/frames.ts';
import { openOwnState } from '../services/cluster/own-state.ts';
import type { LeaseRecord, Records } from '../services/cluster/record.ts';
import { configFile } from './client.ts';
import { promoteAlone } from './cluster-alone.ts';
import { NO_STANDBY } from './cluster-finding.ts';
import { openClusterParts } from './cluster-member.ts';
import { askFirst, CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

/** For the other gateway to let go and this one to begin. */
const HANDOVER_MS = 40_000;
/** For NATS servers that choose a leader: 4 to 9 s, and more on a busy machine. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 500;
/** Both gateways write at least once a second while NATS and they are well. */
const SILENT_AFTER_MS = 3_000;

interface Options {
  config?: string;
  json?: boolean;
  force?: boolean;
  yes?: boolean;
}

function open(options: Options, shell: Shell) {
  const file = configFile(options.config, shell);
  const { cluster, dataDirectory } = readConfig(file);
  if (!cluster) throw new CommandFailed(`${file} has no cluster section.`, EXIT.usage);
  const parts = openClusterParts({ cluster, dataDirectory, clock: shell.clock });
  const never = new AbortController().signal;
  const read = (final?: JetStreamError['kind']) => answered(() => parts.bucket.read(never), shell, final);
  return {
    ...parts,
    name: cluster.name,
    read,
    /** Before a word is written: the bucket of another site takes none. */
    async readOwn() {
      const records = await read();
      if (records.lease && records.lease.value.site !== parts.identity.site)
        throw new CommandFailed(
          `${cluster.name} is of another site than ${records.lease.value.holder}, which has the bucket ${cluster.bucket}: their vault keys differ. Restore an archive of ${records.lease.value.holder} here, or use another cluster.bucket. Nothing was changed.`,
        );
      return records;
    },
    want: (active: string, after: number, force = false) =>
      answered(() => parts.bucket.write('wanted', { active, force, after }, undefined, never), shell),
    /** The newest epoch that this gateway has seen. */
    seen: () => openOwnState(join(dataDirectory, 'cluster', 'state.json')).current.epoch,
    /** Commits that the standby has not; null: not known. */
    async behind(position: number | null): Promise<number | null> {
      const last = await parts.client
        .use((jetStream) => jetStream.last(parts.stream, `${cluster.bucket}.commits`), never)
        .catch(() => undefined);
      const number = last && decodeMessage(last.payload)?.number;
      return number === undefined || position === null ? null : Math.max(0, number - position);
    },
    [Symbol.dispose]: () => parts.client[Symbol.dispose](),
  };
}

/** Asked again as long as there is patience. `final`: not after that. */
async function answered<T>(
  ask: () => Promise<T>,
  { clock, stderr }: Shell,
  final?: JetStreamError['kind'],
): Promise<T> {
  const until = clock.monotonic() + PATIENCE_MS;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof JetStreamError)) throw error;
      if (error.kind === final || clock.monotonic() >= until)
        throw new CommandFailed(
          `NATS does not answer: ${error.message}. Look at the NATS servers and the network to them. What goes on meanwhile: docs/operations.md, NATS is away; one gateway alone, without them: NATS does not come back.`,
        );
      if (isFirst)
        stderr.write(
          `NATS does not answer yet, and is asked for ${PATIENCE_MS / 1_000} s: ${error.message}\n`,
        );
      await clock.sleep(LOOK_EVERY_MS);
    }
  }
}

export async function showCluster(options: Options, shell: Shell): Promise<void> {
  using cluster = open(options, shell);
  const { lease, standby, isHeard } = await heard(() => cluster.read('unreachable'), shell);
  const behind = await cluster.behind(standby?.value.position ?? null);
  if (options.json) {
    const { holder = null, epoch = null } = lease?.value ?? {};
    return printJson(shell, {
      active: holder,
      isHeard: isHeard('lease'),
      epoch,
      mayTakeOver: lease?.value.standby ?? null,
      standby: standby ? { name: standby.value.name, reason: standby.value.reason, behind } : null,
    });
  }
  const lines = [
    lease
      ? activeLine(lease.value, isHeard('lease'))
      : 'no gateway is active: gatehouse cluster promote on the one that is to be, while no other one runs',
    standby && !isHeard('standby')
      ? `${standby.value.name} is not heard, and nothing takes over: start it (systemctl start gatehouse), and look at its log`
      : standbyLine({ lease, standby }, behind),
  ];
  shell.stdout.write(`${lines.join('\n')}\n`);
}

/** The records outlast who wrote them: only one that is written again says that a gateway runs. */
async function heard(read: () => Promise<Records>, { clock }: Shell) {
  const first = await read();
  const isNew = (records: Records, key: 'lease' | 'standby') =>
    records[key]?.revision !== first[key]?.revision;
  const isComplete = (records: Records) =>
    (['lease', 'standby'] as const).every((key) => !records[key] || isNew(records, key));
  const records = await looked(read, SILENT_AFTER_MS, isComplete, clock);
  return { ...records, isHeard: (key: 'lease' | 'standby') => isNew(records, key) };
}

/** What there is once it is enough, or the time is over. For as long as NATS does not answer it stands still: no gateway writes then. */
async function looked(
  read: () => Promise<Records>,
  milliseconds: number,
  isEnough: (records: Records) => boolean,
  clock: Clock,
): Promise<Records> {
  for (let left = milliseconds; ; left -= LOOK_EVERY_MS) {
    const records = await read();
    if (left <= 0 || isEnough(records)) return records;
    await clock.sleep(LOOK_EVERY_MS);
  }
}

function activeLine({ holder, epoch, standby }: LeaseRecord, isHeard: boolean): string {
  if (isHeard) return `${holder} is active (epoch ${epoch})`;
  const remedy =
    'start it (systemctl start gatehouse), or, where it is gone for good, gatehouse cluster promote --force on the other one';
  return `${holder} was active (epoch ${epoch}) and is not heard: ${standby ? `${standby} takes over within 12 s if it runs; else ` : ''}${remedy}`;
}

function standbyLine({ lease, standby }: Pick<Records, 'lease' | 'standby'>, behind: number | null): string {
  const named = lease?.value.standby;
  const lag = behind === null ? '' : `, ${behind} ${behind === 1 ? 'message' : 'messages'} behind`;
  if (named) return `${named} follows and takes over when ${lease.value.holder} is gone${lag}`;
  const why = standby?.value.reason;
  if (standby && standby.value.name !== lease?.value.holder && why)
    return `${standby.value.name} could not take over: ${why}`;
  return NO_STANDBY;
}

export async function promote(options: Options, shell: Shell): Promise<void> {
  const file = configFile(options.config, shell);
  const { cluster: section, dataDirectory } = readConfig(file);
  if (!section && options.force) return promoteAlone(dataDirectory, { yes: options.yes, file }, shell);
  using cluster = open(options, shell);
  const { lease, standby } = await cluster.readOwn();
  const { name } = cluster;
  // NATS has lost what this gateway has seen: that lease says nothing.
  const known = lease && lease.value.epoch >= cluster.seen() ? lease.value : undefined;
  const holder = known?.holder;
  if (holder === name) throw new CommandFailed(`${name} is active already.`);
  const isForced = options.force === true || holder === undefined;
  if (isForced) {
    const other = holder ?? 'every other gateway of this site';
    const question = `Is ${other} switched off? NATS cannot stop one that runs and is cut off from it: then both move doors. ${name} becomes active.`;
    await askFirst(shell, options.yes, question, 'Nothing was changed.');
  } else if (known?.standby !== name) {
    const why = standby?.value.name === name ? standby.value.reason : 'it does not run, or does not follow';
    throw new CommandFailed(
      `${name} cannot take over from ${holder}: ${why ?? 'it has only just begun to follow'}. Where ${holder} is switched off for good: --force`,
    );
  }
  await cluster.want(name, known?.epoch ?? cluster.seen(), isForced);
  await handedOver(cluster, name, shell);
}

export async function demote(options: Options, shell: Shell): Promise<void> {
  using cluster = open(options, shell);
  const { lease } = await cluster.readOwn();
  const { name } = cluster;
  if (lease?.value.holder !== name)
    throw new CommandFailed(`${name} is not active: ${lease?.value.holder ?? 'no gateway'} is.`);
  const successor = lease.value.standby;
  if (successor === null)
    throw new CommandFailed(`No gateway follows ${name}: stop it instead (systemctl stop gatehouse).`);
  await cluster.want(successor, lease.value.epoch);
  await handedOver(cluster, successor, shell);
}

async function handedOver(cluster: ReturnType<typeof open>, to: string, { clock, stdout }: Shell) {
  const isActive = ({ lease }: Records) => lease?.value.holder === to && !lease.value.released;
  const records = await looked(cluster.read, HANDOVER_MS, isActive, clock);
  if (!isActive(records))
    throw new CommandFailed(
      `${to} is not active after ${HANDOVER_MS / 1_000} s: look at gatehouse cluster status, and at its log.`,
    );
  stdout.write(`${to} is active (epoch ${records.lease?.value.epoch})\n`);
}
