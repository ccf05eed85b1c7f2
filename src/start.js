#!/usr/bin/env node
/**
 * Sets the umask and the code cache, then runs main.ts, or the bundle made of it. Plain JavaScript, because Node loads its
 * TypeScript compiler for the first .ts file it finds outside the cache: 60 ms and 15 MB at each start, for nothing once the
 * cache is warm.
 */
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

// First, for the cache too: what Gatehouse writes is its own business. The server opens its socket for the group itself.
process.umask(0o077);
// In a folder of ours: Node's own default is in /tmp, where others could plant code.
const { CACHE_DIRECTORY, XDG_CACHE_HOME } = process.env;
enableCompileCache(CACHE_DIRECTORY ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'gatehouse'));
// A package has no sources. A checkout runs them, unless its bundle is asked for, as the whole suite and the bench do.
const isBundled = process.env.GATEHOUSE_BUNDLE === '1' || !existsSync(join(import.meta.dirname, 'main.ts'));
await import(isBundled ? '../dist/main/main.js' : './main.ts');
