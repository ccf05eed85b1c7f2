/** What the checks of `gatehouse doctor` are given, and what they say. */
import type { Config } from '../../config.ts';
import type { Finding } from '../findings.ts';
import type { Shell } from '../shell.ts';

export interface Patient {
  config: Config;
  shell: Shell;
  /** The daemon holds its admin socket. */
  running: boolean;
}

export interface Diagnosis extends Finding {
  /** The command, or the setting, that mends it. */
  remedy?: string;
}
