/**
 * Stack traces of a bundle, with the lines of the sources. A map is read when the first error of its file is logged: with
 * --enable-source-maps Node.js reads all of them at each start, which costs each process 7 to 10 MB.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PLACE = /(file:\/\/[^\s():]+\.js):(\d+):(\d+)/g;

/** By file; undefined: it has none. */
const maps = new Map<string, SourceMap | undefined>();

export function withSources(stack: string): string {
  return stack.replaceAll(PLACE, (place: string, url: string, line: string, column: string) => {
    const file = fileURLToPath(url);
    if (!maps.has(file)) maps.set(file, mapOf(file));
    const origin = maps.get(file)?.findOrigin(Number(line), Number(column));
    if (!origin || !('fileName' in origin)) return place;
    return `${join(dirname(file), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
  } catch {
    // Sources run, or the map is away: the trace stays as it is.
    return undefined;
  }
}
