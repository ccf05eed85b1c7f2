/**
 * docs/openapi.json in the hands of other programs: the rules of redocly and of spectral, and a generated TypeScript client. Their packages
 * have a folder of their own, test/clients, for openapi-typescript needs another version of TypeScript than this project:
 * `npm ci --ignore-scripts` there.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 120_000 });

const DOCUMENT = join(import.meta.dirname, '../docs/openapi.json');
const CLIENTS = join(import.meta.dirname, 'clients');
const PACKAGES = join(CLIENTS, 'node_modules');

function run(script: string, ...argv: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...argv], { encoding: 'utf8' });
  return { status, output: stdout + (status === 0 ? '' : stderr) };
}

describe.skipIf(!existsSync(PACKAGES))('docs/openapi.json', () => {
  const LINTERS = [
    { name: 'redocly', packages: '@redocly', word: /^info-license: /m },
    { name: 'spectral', packages: '@stoplight', word: /^info-license: |^operation-operationId: /m },
  ];

  describe.each(LINTERS)('by the rules of $name', ({ name, packages, word }) => {
    const isMissing = !existsSync(join(PACKAGES, packages));
    const lint = (document: string) => run(join(CLIENTS, `${name}.js`), document);

    it.skipIf(isMissing)('is clean', () => {
      expect(lint(DOCUMENT)).toEqual({ status: 0, output: '' });
    });

    it.skipIf(isMissing)('would not be clean without its licence and an operationId', () => {
      const document = JSON.parse(readFileSync(DOCUMENT, 'utf8'));
      delete document.info.license;
      delete document.paths['/healthz'].get.operationId;
      const file = join(temporaryFolder(), 'openapi.json');
      writeFileSync(file, JSON.stringify(document));
      expect(lint(file).output).toMatch(word);
    });
  });

  it('makes a TypeScript client that compiles with a program that uses it', () => {
    const folder = temporaryFolder();
    const client = join(folder, 'gatehouse.ts');
    const made = run(join(PACKAGES, 'openapi-typescript/bin/cli.js'), DOCUMENT, '-o', client);
    expect(made.status, made.output).toBe(0);
    copyFileSync(join(CLIENTS, 'usage.ts'), join(folder, 'usage.ts'));
    symlinkSync(PACKAGES, join(folder, 'node_modules'));
    const options = ['--strict', '--noEmit', '--module', 'nodenext', '--allowImportingTsExtensions'];
    const compiled = run(join(PACKAGES, 'typescript/bin/tsc'), ...options, join(folder, 'usage.ts'));
    expect(compiled).toEqual({ status: 0, output: '' });
  });
});
