/**
 * Before the whole suite: the daemons that tests start run from a bundle, as on a site, and start in half the time. When
 * files of tests are named, or watched, daemons run from their sources, and nothing is built first.
 */
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { build } from '../scripts/build.ts';

export async function setup({ vitest }: TestProject): Promise<void> {
  const isWhole = !process.argv.slice(2).some((argument) => /[./]/.test(argument));
  if (vitest.config.watch || !isWhole) return;
  await build(join(import.meta.dirname, '..'));
  process.env.GATEHOUSE_BUNDLE = '1';
}
