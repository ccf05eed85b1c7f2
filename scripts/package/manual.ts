/** The manual page and the completion of the command line, out of the commands themselves. */
import type { Command } from 'commander';
import { completionScript } from '../../src/cli/completion.ts';
import { program } from '../../src/cli/program.ts';
import type { Shell } from '../../src/cli/shell.ts';

/** With no shell: commands are listed, never run. */
const root = (): Command => program({ env: {} } as Shell, { exitCode: 0 });

/** troff with the macros of man(7). */
export function manualPage(version: string, seconds: number): string {
  const gatehouse = root();
  const date = new Date(seconds * 1_000).toISOString().slice(0, 10);
  const commands = leaves(gatehouse).flatMap(({ words, command }) => [
    `.SS ${troff(words.join(' '))} ${troff(usageOf(command))}`,
    troff(`${command.description()}.`),
    ...command.options.flatMap(({ flags, description }) => ['.TP', `.B ${troff(flags)}`, troff(description)]),
  ]);
  return `${[
    `.TH GATEHOUSE 1 ${date} "gatehouse ${version}"`,
    '.SH NAME',
    'gatehouse \\- access-control gateway of a site, and its command line',
    '.SH SYNOPSIS',
    '.B gatehouse',
    '.I command',
    '[\\fIoption\\fR ...]',
    '.SH DESCRIPTION',
    troff(gatehouse.description()),
    'The commands work on the service of this machine through its socket; root and members of the group gatehouse may use it.',
    '.SH COMMANDS',
    ...commands,
    '.SH FILES',
    '.TP',
    '.I /etc/gatehouse/gatehouse.yaml',
    'the configuration; every setting is in gatehouse.example.yaml beside it',
    '.TP',
    '.I /var/lib/gatehouse',
    'database, keys and certificates of this site',
    '.SH SEE ALSO',
    '.I /usr/share/doc/gatehouse/operations.md',
  ].join('\n')}\n`;
}

/** Without those that Gatehouse itself runs, and without `help`. */
function visible(command: Command): Command[] {
  const all = command.createHelp().visibleCommands(command);
  return all.filter((each) => each.name() !== 'help');
}

interface Leaf {
  words: string[];
  command: Command;
}

/** Commands that have no commands of their own. */
function leaves(command: Command, words: string[] = []): Leaf[] {
  const parts = visible(command);
  if (parts.length === 0) return [{ words, command }];
  const own = command.options.length > 1 && words.length > 0 ? [{ words, command }] : [];
  return [...own, ...parts.flatMap((each) => leaves(each, [...words, each.name()]))];
}

function usageOf(command: Command): string {
  return command.registeredArguments
    .map((argument) => (argument.required ? `<${argument.name()}>` : `[${argument.name()}]`))
    .join(' ');
}

/** A backslash and a leading dot mean something to troff; a hyphen is typed. */
function troff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1');
}

/** For bash. */
export function completion(): string {
  return completionScript(root());
}
