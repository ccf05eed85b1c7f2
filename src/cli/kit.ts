/** What the commands of this program are made with (program.ts). */
import type { Command } from 'commander';
import type { Shell } from './shell.ts';

export const CONFIG_OPTION = [
  '-c, --config <file>',
  'configuration file (default: $GATEHOUSE_CONFIG, /etc/gatehouse/gatehouse.yaml, or the packaged example)',
] as const;
export const JSON_OPTION = ['--json', 'print JSON for a program'] as const;
export const YES_OPTION = ['-y, --yes', 'do not ask'] as const;

/** What a command does, with its arguments and options before those of the kit. False: it ends with 1. */
export type Run = (...given: never[]) => unknown;

export interface Kit {
  shell: Shell;
  /** Ends the program with this, unless it throws. */
  endWith(exitCode: number): void;
  example(command: Command, ...lines: string[]): Command;
  /** The options with which a command finds the daemon. */
  addressed(command: Command): Command;
  whole(text: string): number;
  wholeUpTo(max: number): (text: string) => number;
  /** The action of a command that asks the daemon: a client and the shell come last. */
  atDaemon(load: () => Promise<Run>): (...given: unknown[]) => Promise<void>;
  /** The action of one that does not: the shell comes last. */
  here(load: () => Promise<Run>): (...given: unknown[]) => Promise<void>;
}
