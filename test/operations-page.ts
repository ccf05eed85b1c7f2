/** The blocks of docs/operations.md. */
import { join } from 'node:path';
import { shellBlocks } from './shell-blocks.ts';

const FILE = join(import.meta.dirname, '../docs/operations.md');
export const page = shellBlocks(FILE);

/** Those below a heading, in order. */
export const blocksBelow = (heading: string) => shellBlocks(FILE, heading);

/** The one block with this text in it, or that is this line. */
export function blockWith(text: string, line?: 'alone'): string {
  const [found, ...others] = page.filter((block) =>
    line === 'alone' ? !block.includes('\n') && block.includes(text) : block.includes(text),
  );
  if (found === undefined || others.length > 0) throw new Error(`no block, or several, with ${text}`);
  return found;
}
