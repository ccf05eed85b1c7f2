/**
 * A gateway that was in a cluster, and out of whose configuration an operator has taken `cluster`, since NATS does not come back. Which
 * one is active cannot be known then: an operator says that the other one is off.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Takeover } from '../app/services.ts';
import { openCopy } from '../services/cluster/copy.ts';
import { type OwnState, openOwnState } from '../services/cluster/own-state.ts';
import { type TakeOverOptions, takeOver } from './cluster-copy.ts';
import { holdDataDirectory } from './data-directory.ts';
import { asOwnerOf } from './folder-owner.ts';
import { askFirst, CommandFailed, type Shell } from './shell.ts';

/** More than the other one can have begun since this one saw it last: what NATS knows of it is older then. */
const EPOCHS_AHEAD = 1_000;

/** Throws where the other one may be active; undefined: there is nothing to take over. */
export function beginAlone(options: TakeOverOptions): Takeover | undefined {
  const own = stateIn(options.dataDirectory);
  if (!own) return undefined;
  if (mayBeReplaced(own))
    throw new Error(
      `cluster: the configuration has no such section any more, and the other gateway may be active by what ${options.dataDirectory} knows: put it back, or switch the other one off and say so (gatehouse cluster promote --force)`,
    );
  const copy = openCopy(join(options.dataDirectory, 'cluster', 'copy'));
  return takeOver(options, own, copy.isWhole ? copy : undefined);
}

/** The word of an operator, for a gateway that is stopped. */
export async function promoteAlone(
  dataDirectory: string,
  { yes, file }: { yes: boolean | undefined; file: string },
  shell: Shell,
): Promise<void> {
  using _user = asOwnerOf(dataDirectory, shell);
  const own = stateIn(dataDirectory);
  if (!own)
    throw new CommandFailed(`${file} has no cluster section, and ${dataDirectory} was in no cluster.`);
  if (mayBeReplaced(own)) {
    using _held = held(dataDirectory);
    const question =
      'Is the other gateway of this site switched off, and does it stay off? Nothing stops it: one that runs moves doors, as this one does. This one goes on alone.';
    await askFirst(shell, yes, question, 'Nothing was changed.');
    const { role, epoch } = own.current;
    const unplaced = role === 'standby' ? 'the other gateway' : own.current.unplaced;
    await own.change({ role: 'active', standby: null, epoch: epoch + EPOCHS_AHEAD, unplaced });
  }
  shell.stdout.write('This gateway goes on alone when it is started.\n');
}

function stateIn(dataDirectory: string): OwnState | undefined {
  const file = join(dataDirectory, 'cluster', 'state.json');
  return existsSync(file) ? openOwnState(file) : undefined;
}

const mayBeReplaced = ({ current }: OwnState) => current.role === 'standby' || current.standby !== null;

function held(dataDirectory: string): Disposable {
  try {
    return holdDataDirectory(dataDirectory);
  } catch (cause) {
    throw new CommandFailed((cause as Error).message, undefined, { cause });
  }
}
