/** config/prometheus-rules.yaml has the alarms of docs/operations.md, each as a rule. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..');

interface Rule {
  alert: string;
  expr: string;
  annotations: { summary: string };
}

it('has the expressions of the page under their names, and no others', () => {
  const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const table = page.split('## What each alarm means')[1]?.split('\n## ')[0] ?? '';
  const documented = [...table.matchAll(/^\| ([^|]+) \| (`[^|]+`) \|/gm)]
    .filter(([, name]) => name !== 'alarm')
    .flatMap(([, name, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)].map(([, expr]) => `${name}: ${expr}`));
  expect(documented.length).toBeGreaterThan(15);
  const file = parse(readFileSync(join(root, 'config/prometheus-rules.yaml'), 'utf8'));
  const rules: Rule[] = file.groups.flatMap(({ rules }: { rules: Rule[] }) => rules);
  expect(rules.map(({ annotations, expr }) => `${annotations.summary}: ${expr}`)).toEqual(documented);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});
