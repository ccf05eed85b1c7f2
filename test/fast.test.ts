import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { coordinatorTests, fastTests } from './fast.ts';
import { temporaryFolder } from './temporary.ts';

/** A project of these files and their imports. */
function project(files: Record<string, readonly string[]>): string {
  const root = temporaryFolder();
  for (const folder of ['src', 'drivers', 'test']) mkdirSync(join(root, folder));
  for (const [path, imports] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), imports.map((statement) => `import ${statement};\n`).join(''));
  }
  return root;
}

it('leaves out what starts a process, opens a socket, loads a simulator or asks for time, also by a helper', () => {
  const root = project({
    'src/pure.test.ts': ["{ p } from './pure.ts'", "{ expect } from 'vitest'"],
    'src/pure.ts': ["type { Socket } from 'node:net'"],
    'src/serves.ts': ["{ createServer } from 'node:http'"],
    // The product may have a server that the test does not open.
    'src/serves.test.ts': ["{ parse } from './serves.ts'"],
    'src/starts.ts': ["{ spawn } from 'node:child_process'"],
    'src/between.ts': ["{ start } from './starts.ts'"],
    'src/starts.test.ts': ["{ between } from './between.ts'"],
    'src/typed.test.ts': ["type { Start } from './starts.ts'"],
    'drivers/connects.test.ts': ["{ connect } from 'node:net'"],
    'drivers/test-peer.ts': ["{ connect } from 'node:tls'"],
    'drivers/peer.test.ts': ["{ peer } from './test-peer.ts'"],
    'drivers/played.test.ts': ["{ openLock } from '../test/simulators/lock.ts'"],
    'test/simulators/lock.ts': [],
    'test/clients/node_modules/x/y.test.ts': [],
  });
  writeFileSync(join(root, 'src/search.test.ts'), "it('ends', { timeout: 600_000 }, () => undefined);\n");
  expect(fastTests(root)).toEqual(['src/pure.test.ts', 'src/serves.test.ts', 'src/typed.test.ts']);
});

it('finds the tests that have a coordinator of the make of their run, also by a helper', () => {
  const root = project({
    'test/simulators/zigbee/make.ts': ["{ inject } from 'vitest'"],
    'test/simulators/zigbee/herdsman.ts': ["{ MAKE } from './make.ts'"],
    'test/simulators/zigbee/air.test.ts': ["{ openHost } from './herdsman.ts'"],
    'drivers/link.test.ts': ["{ MAKE } from '../test/simulators/zigbee/make.ts'"],
    'drivers/pure.test.ts': ["type { Host } from '../test/simulators/zigbee/herdsman.ts'"],
  });
  expect(coordinatorTests(root)).toEqual(['drivers/link.test.ts', 'test/simulators/zigbee/air.test.ts']);
});
