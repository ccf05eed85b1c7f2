/**
 * Loaded before the daemon (`node --import`) when a demo or a test starts it: ends the daemon when its standard input
 * ends, so that it does not outlive a parent that was killed with -9. A service under systemd is not tied like this.
 * Plain JavaScript, since it runs before the code cache is on.
 */
const GRACE_MS = 10_000;

process.stdin.on('end', () => {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), GRACE_MS).unref();
  process.kill(process.pid, 'SIGTERM');
});
process.stdin.on('error', () => undefined);
process.stdin.resume();
// Reading must not keep a daemon alive that wants to end.
if ('unref' in process.stdin && typeof process.stdin.unref === 'function') process.stdin.unref();
