import { describe, expect, it } from 'vitest';
import { check } from './rules.ts';
import { parseSource } from './source.ts';

/** The broken rules of a project that has these files, as `file:line rule`. */
function broken(files: Record<string, string>): string[] {
  return check(new Map(Object.entries(files))).map(({ path, line, rule }) => `${path}:${line} ${rule}`);
}

describe('who may import what', () => {
  it.each<[string, Record<string, string>, string[]]>([
    [
      'drivers import src',
      { 'drivers/a/driver.ts': "import type { X } from '../../src/x.ts';", 'src/x.ts': '' },
      ['drivers/a/driver.ts:1 drivers-apart'],
    ],
    [
      'a room imports from one above it, types too',
      {
        'src/platform/http/app.ts': "import type { x } from '../../resources/doors/doors.ts';",
        'src/services/jobs/jobs.ts': "import '../../app/gateway.ts';\nimport '../../platform/http/app.ts';",
        'src/resources/doors/doors.ts': '',
        'src/app/gateway.ts': '',
      },
      ['src/platform/http/app.ts:1 downwards', 'src/services/jobs/jobs.ts:1 downwards'],
    ],
    [
      'a slice imports of one below it more than types, and of one above it anything',
      {
        'src/resources/doors/doors.ts': `import type { Z } from '../zgates/zgates.ts';
import { openZ } from '../zgates/zgates.ts';`,
        'src/resources/zgates/zgates.ts': "import type { D } from '../doors/doors.ts';",
      },
      ['src/resources/doors/doors.ts:2 downwards', 'src/resources/zgates/zgates.ts:1 downwards'],
    ],
    [
      'a library has two importers',
      {
        'src/a.ts': "import mqtt from 'mqtt';\nimport { z } from 'zod';",
        'src/b.ts': "import { z } from 'zod';\nexport { c } from 'mqtt/lib';",
        'drivers/c.ts': "import type { T } from 'mqtt';",
        'src/c.ts': "import type { T } from 'mqtt';",
      },
      ['drivers/c.ts:1 one-importer', 'src/b.ts:2 one-importer'],
    ],
  ])('%s', (_name, files, faults) => {
    expect(broken(files)).toEqual(faults);
  });
});

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

describe('process and time', () => {
  it('belong to a few files, and to tests', () => {
    const code = `import { hrtime } from 'node:process';
process.exit(1);
await import('node:timers/promises');
const t = [Date.now(), new Date(), performance.now(), Math.random(), setTimeout(f), AbortSignal.timeout(5)];
const fine = [new Date(t), a.process, { process: 1 }, clock.setTimeout, random ?? Math.random];
`;
    const files = {
      'src/a.ts': code,
      'src/platform/field/host/host.ts': 'process.exit();',
      'src/a.test.ts': code,
      'test/b.ts': code,
    };
    expect(broken(files)).toEqual([
      'src/a.ts:1 process',
      'src/a.ts:2 process',
      'src/a.ts:3 time',
      ...Array(6).fill('src/a.ts:4 time'),
    ]);
    expect(broken({ 'src/platform/clock.ts': 'Date.now(); new Date();' })).toEqual([]);
  });
});

describe('the rest', () => {
  it('finds what is unfinished, skipped or of one machine', () => {
    const unfinished = ['TO', 'DO'].join('');
    const home = ['', 'home', 'me', 'x'].join('/');
    const [only, skip] = [['on', 'ly'].join(''), ['sk', 'ip'].join('')];
    expect(
      broken({
        'src/a.ts': `export default 1;\n// ${unfinished}: later\nconst text = '${unfinished}';`,
        'src/a.test.ts': `it.${only}('x');\ndescribe.${skip}('y');\nit.skipIf(no)('z');\nconst s = 'it.${only}';`,
        'README.md': `see ${home}\n`,
      }),
    ).toEqual([
      'README.md:1 machine-path',
      'src/a.test.ts:1 skipped-test',
      'src/a.test.ts:2 skipped-test',
      'src/a.ts:2 unfinished',
    ]);
  });

  it('finds literals that are spread into literals, and not what is spread on a condition or by name', () => {
    expect(
      broken({
        'src/a.ts': `const a = { ...{ b, c: { d: \`\${e}\` } }, f };
const g = {
  h,
  ...{
    i,
  },
};
const j = { ...({ k } as const), ...({ l }), m: { ...{ n } } };
const fine = { ...a, ...(b && { c }), ...(d ? { e } : {}), ...(f ?? {}), ...{ g, h }[i], ...{ j }.j };
const { ...rest } = { k: '...{ l }' }; // ...{ m }`,
        'src/a.test.ts': 'const a = { ...{ b }, ...c };',
      }),
    ).toEqual([
      'src/a.test.ts:1 spread-literal',
      'src/a.ts:1 spread-literal',
      'src/a.ts:4 spread-literal',
      ...Array(3).fill('src/a.ts:8 spread-literal'),
    ]);
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

describe('reading a file', () => {
  const parsed = (text: string) => parseSource('src/a/b.ts', text);

  it('separates code from comments and strings, line for line', () => {
    const text = [
      "const a = 'it\\'s // no comment'; // a comment 'with quotes",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
      'const b = `one ${f({ x: "}" })} two // ${`in ${c}`} three`; g();',
      "const r = /[/'\"]+/g; const q = a / b / c; /* 'x' */ h();",
    ].join('\n');
    const { code, comments } = parsed(text);
    expect(code.split('\n').map((line) => line.replace(/ +/g, ' ').trim())).toEqual([
      "const a = ' ';",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
      'const b = ` ${f({ x: " " })} ${` ${c}`} `; g();',
      'const r = ; const q = a / b / c; h();',
    ]);
    expect(comments.split('\n').map((line) => line.trim())).toEqual([
      "// a comment 'with quotes",
      '',
      "/* 'x' */",
    ]);
    expect([code.length, comments.length]).toEqual([text.length, text.length]);
  });

  it('finds every form of import', () => {
    const text = `import 'one';
import two, { type T } from "two";
import * as three from './three.ts';
import type { Four } from '../four.ts';
export * from './five.ts';
export { type Six } from './six.ts';
const seven = await import('seven');
const text = "import 'no'"; const from = 'no';
import json from '../../package.json' with { type: 'json' };`;
    expect(
      parsed(text).imports.map(({ specifier, path, typeOnly }) => [specifier, path, typeOnly] as const),
    ).toEqual([
      ['one', undefined, false],
      ['two', undefined, false],
      ['./three.ts', 'src/a/three.ts', false],
      ['../four.ts', 'src/four.ts', true],
      ['./five.ts', 'src/a/five.ts', false],
      ['./six.ts', 'src/a/six.ts', true],
      ['seven', undefined, false],
      ['../../package.json', 'package.json', false],
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

it('migrations with a number twice, or with a gap, are refused', () => {
  const folder = 'src/platform/database/migrations';
  const named = (...names: string[]) =>
    broken(Object.fromEntries(names.map((name) => [`${folder}/${name}.sql`, ''])));
  expect(named('0001-one', '0002-two')).toEqual([]);
  expect(named('0001-one', '0002-two', '0002-zwei')).toEqual([`${folder}/0002-zwei.sql:1 migration-number`]);
  expect(named('0001-one', '0003-three')).toEqual([`${folder}/0003-three.sql:1 migration-number`]);
});
