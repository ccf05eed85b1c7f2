/** What dependency-cruiser and Biome refuse by our configuration of them: each rule is seen to bite. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conventions-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const name of ['biome.json', '.dependency-cruiser.mjs', 'tsconfig.json', 'scripts/conventions'])
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function write(files: Record<string, string>): Promise<void> {
  for (const room of ['src', 'drivers']) {
    await rm(join(folder, room), { recursive: true, force: true });
    await mkdir(join(folder, room));
  }
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

/** What a tool prints about the files; it ends with 1 where it finds something. */
async function said(tool: string, ...args: string[]): Promise<string> {
  const options = { cwd: folder, env: { PATH: dirname(process.execPath), NO_COLOR: '1' } };
  const { stdout, stderr } = await promisify(execFile)(
    join(ROOT, 'node_modules/.bin', tool),
    args,
    options,
  ).catch((error: { stdout: string; stderr: string }) => error);
  return `${stdout}${stderr}`;
}

const SLICE = 'export type D = 1;\nexport const d = 1;\n';

it('imports go downwards, between slices as types, and a library has one importer', async () => {
  await write({
    'drivers/a/driver.ts': "import type { D } from '../../src/x.ts';\n",
    'src/x.ts': SLICE,
    // A room imports from one above it, types too.
    'src/platform/http/app.ts': "import type { D } from '../../resources/writes/writes.ts';\n",
    'src/services/jobs/jobs.ts': "import '../../app/gateway.ts';\nimport '../../platform/http/app.ts';\n",
    'src/resources/writes/writes.ts': SLICE,
    'src/app/gateway.ts': '',
    // A slice imports of one below it more than types, and of one above it anything.
    'src/resources/doors/doors.ts': `import type { D } from '../zgates/schema.ts';
import { type D as E } from '../rs485/rs485.ts';
import { d } from '../zgates/zgates.ts';
`,
    'src/resources/rs485/rs485.ts': SLICE,
    'src/resources/zgates/schema.ts': SLICE,
    'src/resources/zgates/zgates.ts': `export { type D as F } from '../access/access.ts';\n${SLICE}`,
    'src/resources/access/access.ts': SLICE,
    'src/services/fresh/fresh.ts': "import type { D } from '../audit/audit.ts';\n",
    'src/services/audit/audit.ts': SLICE,
    'drivers/encoder/mqtt-client.ts': "import mqtt from 'mqtt';\n",
    'drivers/encoder/types.ts': "import type { MqttClient } from 'mqtt';\n",
    'drivers/c.ts': "import type { MqttClient } from 'mqtt';\n",
    'src/b.ts': "import { z } from 'zod';\nexport { connect } from 'mqtt';\nexport * from 'vitest';\n",
    'src/a.ts': `import { hrtime } from 'node:process';
await import('node:timers/promises');
import './ring.ts';
`,
    'src/ring.ts': "import type { T } from './a.ts';\nimport './gone.ts';\n",
    'src/console/page.ts': "import { d } from '../x.ts';\n",
    'src/platform/pages.ts': "import type { D } from '../console/schema.ts';\n",
    'src/console/schema.ts': SLICE,
  });
  const found = (await said('depcruise', 'src', 'drivers')).matchAll(/error (\S+: \S+ → )\s*(\S+)/g);
  const faults = [...found].map(([, from, to = '']) => from + to.replace(/.*(node_modules\/\w+).*/, '$1'));
  expect(faults.toSorted()).toEqual([
    'clock: src/a.ts → timers/promises',
    'console-apart: src/console/page.ts → src/x.ts',
    'drivers-apart: drivers/a/driver.ts → src/x.ts',
    'no-ring: src/a.ts → src/ring.ts',
    'one-importer: drivers/c.ts → node_modules/mqtt',
    'one-importer: src/b.ts → node_modules/mqtt',
    'one-importer: src/b.ts → node_modules/vitest',
    'process: src/a.ts → process',
    'resolved: src/ring.ts → ./gone.ts',
    'rooms: src/platform/http/app.ts → src/resources/writes/writes.ts',
    'rooms: src/platform/pages.ts → src/console/schema.ts',
    'rooms: src/services/jobs/jobs.ts → src/app/gateway.ts',
    'slices-order: src/resources/zgates/zgates.ts → src/resources/access/access.ts',
    'slices-order: src/services/fresh/fresh.ts → src/services/audit/audit.ts',
    'slices-types-only: src/resources/doors/doors.ts → src/resources/zgates/zgates.ts',
  ]);
});

it('process and time belong to a few files, and to tests; a literal is not spread into a literal', async () => {
  const code = `process.exit(1);
export const t = [Date.now(), new Date(), performance.now(), Math.random(), setTimeout(f), AbortSignal.timeout(5)];
export const fine = [new Date(t), a.process, { process: 1 }, clock.setTimeout, random ?? Math.random];
export const a = { ...{ b, c: { d: \`\${e}\` } }, f, ...({ k } as const), m: { ...{ n } } };
export const g = { ...a, ...(b && { c }), ...(d ? { e } : {}), ...(f ?? {}), ...{ g, h }[i], ...{ j }.j };
`;
  await write({
    'src/a.ts': code,
    'src/platform/field/host/host.ts': 'process.exit();\n',
    'src/a.test.ts': code,
    'src/platform/clock.ts': 'Date.now();\nnew Date();\n',
  });
  const lines = await said('biome', 'lint', '--reporter=concise', '--diagnostic-level=error', 'src');
  const found = [...lines.matchAll(/(src\/\S+:\d+):\d+: .*\b(plugin|noRestrictedGlobals):/g)].map(
    ([, place, rule]) => `${place} ${rule}`,
  );
  expect(found.toSorted()).toEqual([
    ...Array(3).fill('src/a.test.ts:4 plugin'),
    'src/a.ts:1 noRestrictedGlobals',
    'src/a.ts:2 noRestrictedGlobals',
    ...Array(5).fill('src/a.ts:2 plugin'),
    ...Array(3).fill('src/a.ts:4 plugin'),
  ]);
});

it('no test is left out, or leaves others out', async () => {
  const [only, skip] = [['on', 'ly'].join(''), ['sk', 'ip'].join('')];
  await write({
    'src/a.test.ts': `it.${only}('x');\ndescribe.${skip}('y');\nit.skipIf(no)('z');\nconst s = 'it.${only}';\nit.concurrent.${skip}.each([1])('q');\nit.todo('w');\ncommit.${only}(1);`,
  });
  const lines = await said('biome', 'lint', '--reporter=concise', '--diagnostic-level=error', 'src');
  const found = [...lines.matchAll(/(src\/\S+:\d+):\d+: .*\bplugin: A test/g)].map(([, place]) => place);
  expect(found.toSorted()).toEqual([1, 2, 5, 6].map((line) => `src/a.test.ts:${line}`));
});
