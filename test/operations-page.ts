/** The blocks of docs/operations.md. */
import { join } from 'node:path';
import { shellBlocks } from './shell-blocks.ts';

export const page = shellBlocks(join(import.meta.dirname, '../docs/operations.md'));

/** The one block with this text in it, or that is this line. */
export function blockWith(text: string, line?: 'alone'): string {
  const [found, ...others] = page.filter((block) =>
    line === 'alone' ? !block.includes('\n') && block.includes(text) : block.includes(text),
  );
  if (found === undefined || others.length > 0) throw new Error(`no block, or several, with ${text}`);
  return found;
}
