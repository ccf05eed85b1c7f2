import { expect, it, onTestFinished, vi } from 'vitest';

it('of two workers are never the same', async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  const drawn: number[][] = [];
  for (const worker of ['1', '2']) {
    vi.stubEnv('VITEST_POOL_ID', worker);
    vi.resetModules();
    const { freePort } = await import('./free-port.ts');
    drawn.push(await Promise.all(Array.from({ length: 400 }, freePort)));
  }
  const [one = [], other = []] = drawn;
  expect(new Set([...one, ...other]).size).toBe(800);
});
