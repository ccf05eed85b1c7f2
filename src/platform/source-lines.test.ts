/** The mappings are by hand, as ECMA-426 has them: ";AACA" is line 2 of the bundle, at the beginning of line 2 of the source. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary.ts';
import { openLog } from './log.ts';
import { withSources } from './source-lines.ts';

function bundle(): { folder: string; url: string } {
  const folder = temporaryFolder();
  const file = join(folder, 'dist/main/main.js');
  mkdirSync(join(folder, 'dist/main'), { recursive: true });
  const map = { version: 3, sources: ['../../src/app/door.ts'], names: [], mappings: ';AACA' };
  writeFileSync(`${file}.map`, JSON.stringify(map));
  return { folder, url: String(pathToFileURL(file)) };
}

it('names the line of the source for a line of the bundle', () => {
  const { folder, url } = bundle();
  const stack = `Error: no door\n    at open (${url}:2:1)\n    at node:internal/timers:581:17`;
  const source = join(folder, 'src/app/door.ts');
  expect(withSources(stack)).toBe(
    `Error: no door\n    at open (${source}:2:1)\n    at node:internal/timers:581:17`,
  );
});

it('leaves what no map knows', () => {
  const { folder } = bundle();
  const elsewhere = `Error\n    at ${pathToFileURL(join(folder, 'other.js'))}:7:3`;
  expect(withSources(elsewhere)).toBe(elsewhere);
});

it('is in the log', () => {
  const { folder, url } = bundle();
  const error = new Error('no door');
  error.stack = `Error: no door\n    at open (${url}:2:1)`;
  const lines: string[] = [];
  const { log } = openLog({ level: 'info', journal: false, write: (line) => lines.push(line) });
  log.error({ err: error }, 'it failed');
  expect(lines.join('')).toContain(join(folder, 'src/app/door.ts:2:1'));
});
