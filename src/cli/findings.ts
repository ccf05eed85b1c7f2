/** What a look at the installation has found, one line each, the worst first. */
import type { Writable } from 'node:stream';
import { styled, table } from './shell.ts';

const SEVERITIES = ['bad', 'doubtful', 'good'] as const;
export type Severity = (typeof SEVERITIES)[number];
const MARK = { bad: '✗', doubtful: '!', good: '✓' } as const;
const COLOUR = { bad: 'red', doubtful: 'yellow', good: 'green' } as const;

export interface Finding {
  severity: Severity;
  subject: string;
  text: string;
  /** The command, or the setting, that mends it. */
  remedy?: string;
}

/** As lines for `stream`. */
export function shownFindings(findings: readonly Finding[], stream: Writable): string {
  const sorted = findings.toSorted((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
  const rows = sorted.map(({ severity, subject, text, remedy }) => [
    MARK[severity],
    subject,
    remedy === undefined ? text : `${text} → ${remedy}`,
  ]);
  const lines = table(rows).split(/(?<=\n)/);
  return sorted
    .map(({ severity }, index) => {
      const line = lines[index] ?? '';
      return styled(stream, COLOUR[severity], line.slice(0, 1)) + line.slice(1);
    })
    .join('');
}
