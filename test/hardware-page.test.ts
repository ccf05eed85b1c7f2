/** docs/hardware.md names each product that Gatehouse comes with a profile or a module type for, and where its facts come from. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MODULE_TYPES } from '../drivers/dcon/module-types.ts';

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
