/** The keys of archives: where they come from on the command line, and `gatehouse backup key`, which draws one. */
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { type DecryptionKey, drawKey, type EncryptionKey, identitiesIn, recipient } from '../platform/age.ts';
import type { Config } from '../platform/config/config.ts';
import { CommandFailed, EXIT, printJson, type Shell, unwritable } from './shell.ts';

/** Guessing costs a second each on one core; shorter ones are found. */
const PASSPHRASE_MIN = 12;

export interface EncryptionOptions {
  recipient?: string[];
  /** `-`: standard input. */
  passphraseFile?: string;
}

export interface DecryptionOptions {
  identity?: string[];
  passphraseFile?: string;
}

export async function encryptionKey(
  { recipient: given, passphraseFile }: EncryptionOptions,
  config: Config,
  shell: Shell,
): Promise<EncryptionKey> {
  if (passphraseFile !== undefined) {
    if (given) throw new CommandFailed('An archive has recipients or a passphrase, not both.', EXIT.usage);
    const passphrase = await readPassphrase(passphraseFile, shell);
    if (passphrase.length >= PASSPHRASE_MIN) return { passphrase };
    throw new CommandFailed(`The passphrase has less than ${PASSPHRASE_MIN} characters.`, EXIT.usage);
  }
  const recipients = given ?? config.backup?.recipients;
  if (!recipients)
    throw new CommandFailed(
      'No one could read the archive: set backup.recipients in the configuration, or name one with --recipient age1…; gatehouse backup key makes one.',
      EXIT.usage,
    );
  for (const each of recipients) {
    const { error } = recipient.safeParse(each);
    if (error) throw new CommandFailed(`${each}: ${error.issues[0]?.message}.`, EXIT.usage);
  }
  return { recipients };
}

export async function decryptionKey(
  { identity, passphraseFile }: DecryptionOptions,
  shell: Shell,
): Promise<DecryptionKey> {
  if (passphraseFile !== undefined) return { passphrase: await readPassphrase(passphraseFile, shell) };
  if (!identity)
    throw new CommandFailed(
      'An archive opens with its key: name the file with --identity, or with --passphrase-file.',
      EXIT.usage,
    );
  const identities = identity.flatMap((file) => identitiesIn(readGiven(file)));
  if (identities.length > 0 && identities.every((one) => one.startsWith('AGE-SECRET-KEY-1')))
    return { identities };
  throw new CommandFailed(
    `${identity.join(', ')} has no secret key of age: it begins with AGE-SECRET-KEY-1.`,
    EXIT.usage,
  );
}

async function readPassphrase(file: string, shell: Shell): Promise<string> {
  const content = file === '-' ? await text(shell.stdin) : readGiven(file);
  const passphrase = content.split('\n')[0]?.trimEnd() ?? '';
  if (passphrase !== '') return passphrase;
  throw new CommandFailed(`The first line of ${file} is empty: it must be the passphrase.`, EXIT.usage);
}

function readGiven(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read: ${(cause as Error).message}.`, EXIT.usage, { cause });
  }
}

/** The secret key goes to a file (0600) that must not exist; the public one to standard output. */
export async function makeKey(options: { out: string; json?: boolean }, shell: Shell): Promise<void> {
  const { identity, recipient } = await drawKey();
  let target: number;
  try {
    target = openSync(options.out, 'wx', 0o600);
  } catch (cause) {
    throw unwritable(options.out, cause);
  }
  writeSync(target, `# public key: ${recipient}\n${identity}\n`);
  fsyncSync(target);
  closeSync(target);
  if (options.json) return printJson(shell, { file: options.out, recipient });
  shell.stdout.write(`${recipient}\n`);
  shell.stderr.write(
    `The secret key is in ${options.out}. Keep it on paper and elsewhere, and not on this machine: without it no archive opens. The public key, age1…, goes into backup.recipients.\n`,
  );
}
