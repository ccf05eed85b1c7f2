import type { Machine } from './machine.ts';
import type { Packages } from './packages.ts';
import type { Site } from './site.ts';

/** What every part of the test works with. */
export interface Bench {
  machine: Machine;
  site: Site;
  packages: Packages;
  report: Report;
}

/** Says what is done, how it went and how long it took, as a table for docs/reliability.md. */
export interface Report extends Disposable {
  /** Does a part of the test. What it returns goes on. */
  step<T>(what: string, work: () => Promise<T> | T): Promise<T>;
  /** A figure, beside what was done last. */
  note(text: string): void;
  /** What is printed beside the first failure. */
  onFailure(look: () => Promise<string>): void;
}

const SECOND_MS = 1_000;

export function openReport(name: string): Report {
  const rows: { what: string; seconds: number; notes: string[]; isGood: boolean }[] = [];
  let look: () => Promise<string> = async () => '';
  return {
    async step(what, work) {
      const begun = performance.now();
      const row = { what, seconds: 0, notes: [] as string[], isGood: false };
      rows.push(row);
      try {
        const result = await work();
        row.isGood = true;
        return result;
      } catch (error) {
        console.error(await look().catch((reason: Error) => reason.message));
        throw new Error(`${name}: ${what}: ${(error as Error).message}`, { cause: error });
      } finally {
        row.seconds = (performance.now() - begun) / SECOND_MS;
        console.log(
          `${row.isGood ? '✓' : '✗'} ${name}: ${what} (${row.seconds.toFixed(1)} s)${row.notes.map((note) => ` · ${note}`).join('')}`,
        );
      }
    },
    note: (text) => void rows.at(-1)?.notes.push(text),
    onFailure(next) {
      look = next;
    },
    [Symbol.dispose]() {
      const lines = rows.map(
        ({ what, seconds, notes, isGood }) =>
          `| ${isGood ? '✓' : '✗'} | ${what} | ${seconds.toFixed(0)} s | ${notes.join('; ')} |`,
      );
      console.log(`\n${name}\n\n| | what | | |\n|---|---|---|---|\n${lines.join('\n')}\n`);
    },
  };
}
