/** `gatehouse unlock`: opens a door now, and says what became of it. */
import type { UnlockResult } from '../resources/doors/lock-schema.ts';
import type { Client } from './client.ts';
import { found, type Kind } from './resources.ts';
import { askFirst, CommandFailed, printJson, type Shell } from './shell.ts';

/** A lock has 10 s to be sent it and may report for as long. */
const DEADLINE_MS = 60_000;

const WORDS: Readonly<Record<UnlockResult['outcome'], string>> = {
  confirmed: 'is open: it was seen to open',
  accepted: 'opens: the lock answered that it will, and has reported nothing since',
  jammed: 'did not open: the bolt does not move. Go and look',
  refused: 'did not open: the lock refused',
  unknown: 'may be open, which is not known: go and look before you try again',
};

export async function unlockDoor(
  doors: Kind,
  text: string,
  { yes, json }: { yes?: boolean; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const { itsId, name } = await found(doors, text, client);
  const shown = `Door ${String(name ?? itsId)}`;
  await askFirst(shell, yes, `${shown} (${itsId}) is opened now. Go on?`, 'Nothing was opened.');
  const result = await client.call<UnlockResult>(
    'POST',
    `${doors.path}/${itsId}/unlock`,
    undefined,
    DEADLINE_MS,
  );
  const { outcome, reason } = result;
  if (json) printJson(shell, result);
  const sentence = `${shown} ${WORDS[outcome]}${reason === null ? '' : ` (${reason})`}.`;
  if (outcome !== 'confirmed' && outcome !== 'accepted') throw new CommandFailed(sentence);
  if (!json) shell.stdout.write(`${sentence}\n`);
}
