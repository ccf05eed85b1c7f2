import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { interfaceOperations, type Parts } from '../src/app/interface.ts';
import { ERROR_STATUS } from '../src/platform/errors.ts';
import { ROLES } from '../src/platform/principal.ts';

const text = readFileSync(join(import.meta.dirname, '../docs/interface.md'), 'utf8');
const rows = text
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').map((cell) => cell.trim()));

/** What the table of operations says of one; undefined when it has none such. */
function rolesOf(operation: string): readonly string[] | undefined {
  const row = rows.find(([, cell = '']) =>
    cell
      .replaceAll('**', '')
      .replaceAll(/ \([^)]*\)/g, '')
      .split(', ')
      .includes(operation),
  );
  const roles = row?.[2];
  if (roles === undefined) return undefined;
  if (roles === 'none needed') return [];
  return roles.startsWith('all five') ? ROLES : roles.split(', ');
}

describe('docs/interface.md', () => {
  const operations = interfaceOperations({} as Parts).filter(({ access }) => access !== 'local');

  it.each(operations.map((each) => [`${each.method.toUpperCase()} ${each.path}`, each] as const))(
    'has %s with its roles',
    (name, { access }) => {
      const roles = typeof access === 'string' ? [] : access;
      expect(rolesOf(name)?.toSorted()).toEqual(roles.toSorted());
    },
  );

  it('says with each 202 where the state of what was accepted can be read', () => {
    for (const { id, status, location } of interfaceOperations({} as Parts))
      expect([id, location !== undefined]).toEqual([id, status === 202]);
  });

  it('has every error code with its status, and no other', () => {
    const codes = rows.filter(
      ([, status = '', code = '']) => /^\d{3}$/.test(status) && /^[A-Z_]+$/.test(code),
    );
    expect(Object.fromEntries(codes.map(([, status, code]) => [code, Number(status)]))).toEqual(ERROR_STATUS);
  });
});
