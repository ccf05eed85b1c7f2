/** Part of `npm run check`: prints `file:line: message` for each broken convention of conventions/rules.ts. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from './conventions/rules.ts';

const TEXT = /\.(ts|tsx|md|sql|yaml|yml|json|sh|py|pl|css|html|service|conf|rules)$|(^|\/)[^/.]+$/;

const root = join(import.meta.dirname, '..');
const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
});
const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
const faults = check(
  new Map(paths.map((path) => [path, TEXT.test(path) ? readFileSync(join(root, path), 'utf8') : undefined])),
);
for (const { path, line, message } of faults) console.log(`${path}:${line}: ${message}`);
process.exitCode = Math.sign(faults.length);
