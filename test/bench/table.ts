/** What a bench reports: rows for a person, with the figure that was aimed at where there is one. */
export interface Row {
  what: string;
  figure: string;
  /** What docs/performance.md promises; met or not is said by `met`. */
  target?: string;
  met?: boolean;
}

export interface BenchTable {
  title: string;
  rows: Row[];
  /** What a reader must know to believe the figures. */
  notes?: string[];
  /** Drawn of the same figures; `file` is relative to the project. Written when asked for. */
  charts?: { file: string; svg: string }[];
}

export function printTable({ title, rows, notes = [] }: BenchTable, write: (line: string) => void): void {
  const width = Math.max(...rows.map(({ what }) => what.length));
  write(`\n${title}\n`);
  for (const { what, figure, target, met } of rows) {
    const mark = met === undefined ? ' ' : met ? '✓' : '✗';
    write(
      `  ${mark} ${what.padEnd(width)}  ${figure}${target === undefined ? '' : `  (target ${target})`}\n`,
    );
  }
  for (const note of notes) write(`    ${note}\n`);
}

/** The value below which a share of the samples lies: 0.5 is the median. Throws when there are none. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new Error('no samples');
  return value;
}
