import { describe, expect, it } from 'vitest';
import { check } from './rules.ts';

/** The broken rules of a project that has these files, as `file:line rule`. */
function broken(files: Record<string, string>): string[] {
  return check(new Map(Object.entries(files))).map(
    ({ path, line, message }) => `${path}:${line} ${message.split(':')[0]}`,
  );
}

describe('purity', () => {
  it('keeps I/O, time, promises and logs out of codecs and machines', () => {
    const code = `import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
const at = new Date(5);
async function f() {}
log.info({}, 'x');
const message = { log: 1, text: 'Date' }; // a Promise in words
`;
    const files = {
      'drivers/osdp/protocol/frame.ts': code,
      'src/resources/writes/machine.ts': code,
      'src/resources/writes/writes.ts': code,
      'src/says.ts':
        '/** By drivers/osdp/protocol/frame.ts. Pure. */\nf(new Date(at).toISOString(), async () => 1);\n',
    };
    const pure = ['1 pure-imports', '3 pure-code', '4 pure-code', '5 pure-code'];
    expect(broken(files)).toEqual([
      ...pure.map((fault) => `drivers/osdp/protocol/frame.ts:${fault}`),
      ...pure.map((fault) => `src/resources/writes/machine.ts:${fault}`),
      'src/says.ts:2 pure-code',
    ]);
  });
});

describe('the rest', () => {
  it('finds what is unfinished, or of one machine', () => {
    const unfinished = ['TO', 'DO'].join('');
    const home = ['', 'home', 'me', 'x'].join('/');
    expect(
      broken({
        'src/a.ts': `export default 1;\n// ${unfinished}: later\nconst text = '${unfinished}';`,
        'README.md': `see ${home}\n`,
      }),
    ).toEqual(['README.md:1 machine-path', 'src/a.ts:2 unfinished']);
  });

  it('follows mentions of files and headings', () => {
    expect(
      broken({
        'src/main.ts': `// see src/main.ts and docs/a.md, Second, or docs/a.md, Third part
/* and src/gone.ts */
const quoted = 'src/gone.ts';`,
        'docs/a.md':
          '# First\n\n## Second one\n\n[ok](#second-one) [folder](../src/) [web](https://x.example/)',
        'README.md': '[a](docs/a.md#second-one)\n[b](docs/a.md#none)\n[c](docs/none.md)\n`docs/b.md`',
      }),
    ).toEqual([
      'README.md:2 reference',
      'README.md:3 reference',
      'README.md:4 reference',
      'src/main.ts:1 reference',
      'src/main.ts:2 reference',
    ]);
  });
});

it('licences that are not on the list are refused', () => {
  const lock = {
    packages: {
      '': { license: 'MIT' },
      'node_modules/choice': { license: '(MIT OR GPL-2.0)' },
      'node_modules/build': { license: 'MPL-2.0', dev: true },
      'node_modules/file': { license: 'MPL-2.0' },
      'node_modules/copyleft': { license: 'GPL-3.0-or-later' },
      'node_modules/silent': {},
    },
  };
  expect(broken({ 'package-lock.json': JSON.stringify(lock) })).toEqual([
    'package-lock.json:1 licence',
    'package-lock.json:1 licence',
    'package-lock.json:1 licence',
  ]);
});

it('a package that has what it needs is not built by npm ci', () => {
  const lock = (entry: object) =>
    JSON.stringify({ packages: { 'node_modules/better-sqlite3': { license: 'MIT', ...entry } } });
  expect(broken({ 'package-lock.json': lock({}) })).toEqual(['package-lock.json:1 gypfile']);
  expect(broken({ 'package-lock.json': lock({ gypfile: false }) })).toEqual([]);
});
