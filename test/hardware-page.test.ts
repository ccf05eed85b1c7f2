/**
 * docs/hardware.md names each product that Gatehouse comes with a profile or a module type for, where its facts come from, and whether
 * there is an imitation of it; docs/locks.md each family of locks.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MODULE_TYPES } from '../drivers/dcon/module-types.ts';
import { FAMILIES } from '../drivers/zigbee/locks/families.ts';
import { deviceSchema } from './simulators/bus/plan.ts';
import { EZSP_VERSIONS } from './simulators/zigbee/ncp/releases.ts';

const ROOT = join(import.meta.dirname, '..');
const page = readFileSync(join(ROOT, 'docs/hardware.md'), 'utf8');
const [products = '', sources = ''] = page.split('### Where the facts come from');

const profiles = readdirSync(join(ROOT, 'config/profiles'))
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => file.slice(0, -'.yaml'.length));

it.each(profiles)('has the profile %s in both tables', (name) => {
  expect(products).toContain(`| profile \`${name}\` |`);
  expect(sources).toContain(`\n| \`${name}\` |`);
});

it.each(MODULE_TYPES.map(({ product }) => product))('has the module %s in both tables', (product) => {
  const number = product.slice(product.indexOf('-') + 1);
  for (const table of [products, sources])
    expect(table).toMatch(new RegExp(`\\|[^|]*\\b${number}\\b[^|]*\\|`));
});

const kinds: readonly string[] = deviceSchema.shape.kind.options;
const isImitated = (row: string) => /\| (imitation|its register map is defined here) \|$/.test(row);
const rowsOf = (name: RegExp) => products.split('\n').filter((row) => name.test(row));

it.each(profiles)('says of %s whether there is an imitation', (name) => {
  const rows = rowsOf(new RegExp(`\\| profile \`${name}\` \\|`));
  expect(rows.map(isImitated)).toEqual([kinds.includes(name)]);
});

it.each(MODULE_TYPES.map(({ product }) => product))(
  'says of the module %s whether there is an imitation',
  (product) => {
    const number = product.slice(product.indexOf('-') + 1);
    const rows = rowsOf(new RegExp(`^\\|[^|]*\\b${number}\\b[^|]*\\| \`dcon\` \\|`));
    expect(rows.map(isImitated)).toEqual([kinds.includes(product.split(' ').at(-1)?.toLowerCase() ?? '')]);
  },
);

it('says which versions of EZSP the imitation speaks', () => {
  const [first, second, from, ...rest] = EZSP_VERSIONS;
  expect(page).toContain(`The imitation speaks EZSP ${first}, ${second} and ${from} to ${rest.at(-1)}.`);
});

it.each(FAMILIES.map(({ name }) => name))('has the family of locks %s', (name) => {
  expect(readFileSync(join(ROOT, 'docs/locks.md'), 'utf8')).toContain(`\n| \`${name}\` |`);
});
