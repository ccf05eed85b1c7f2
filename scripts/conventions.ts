/** Part of `npm run check`: prints `file:line: message` for each broken convention of conventions/rules.ts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './conventions/rules.ts';

/** Made, fetched or private: not ours to check. */
const LEFT_OUT = /^(\.git|node_modules|data|dist|packages|coverage)$/;
const TEXT = /\.(ts|tsx|md|sql|yaml|yml|json|sh|py|pl|css|html|service|conf|rules)$|^[^.]+$/;

const root = join(import.meta.dirname, '..');
const tree = new Map<string, string | undefined>();
(function read(folder: string): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !LEFT_OUT.test(entry.name)) read(path);
    if (entry.isFile())
      tree.set(path, TEXT.test(entry.name) ? readFileSync(join(root, path), 'utf8') : undefined);
  }
})('');

const faults = check(tree);
for (const { path, line, message } of faults) console.log(`${path}:${line}: ${message}`);
if (faults.length > 0) {
  console.log('The rules are at the head of scripts/conventions/rules.ts.');
  process.exitCode = 1;
}
