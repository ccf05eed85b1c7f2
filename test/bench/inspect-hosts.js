/**
 * Loaded before the daemon (`node --import`) by soak.ts: its hosts have a debugger as well, whose address Node prints into
 * the daemon's log. Plain JavaScript, since the compiler of TypeScript would stay in the memory that is measured.
 */
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

childProcess.spawn = new Proxy(childProcess.spawn, {
  apply(spawn, self, [file, words, ...rest]) {
    const isHost = words.some((/** @type {string} */ word) => word.endsWith('start-host.js'));
    return Reflect.apply(spawn, self, [file, isHost ? ['--inspect=127.0.0.1:0', ...words] : words, ...rest]);
  },
});
syncBuiltinESMExports();
