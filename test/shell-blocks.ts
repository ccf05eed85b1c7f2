/** What a page of Markdown shows to be typed. */
import { readFileSync } from 'node:fs';

/** Its indented blocks, without their indentation; of one heading alone where it is given. */
export function shellBlocks(file: string, heading?: string): string[] {
  const whole = readFileSync(file, 'utf8').replaceAll(/^ *```.*?^ *```$/gms, '');
  const text = heading === undefined ? whole : (whole.split(`## ${heading}\n`)[1]?.split(/^## /m)[0] ?? '');
  const blocks = [...text.matchAll(/(?:^ {4,}.*\n(?:\n(?= {4}))*)+/gm)];
  return blocks.map(([block]) => block.replaceAll(/^ {4}/gm, '').trim());
}
