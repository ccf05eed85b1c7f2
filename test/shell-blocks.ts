/** What a page of Markdown shows to be typed. */
import { readFileSync } from 'node:fs';

/** Its indented blocks, without their indentation. */
export function shellBlocks(file: string): string[] {
  const text = readFileSync(file, 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '');
  const blocks = [...text.matchAll(/(?:^ {4,}.*\n(?:\n(?= {4}))*)+/gm)];
  return blocks.map(([block]) => block.replaceAll(/^ {4}/gm, '').trim());
}
