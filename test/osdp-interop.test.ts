/** `npm run osdp:interop` against a simulated device, as a technician runs it against a real one. */
import { spawn } from 'node:child_process';
import { expect, it, onTestFinished } from 'vitest';
import { openSimulatedBus } from './simulators/bus/bus.ts';

const KEY = '000102030405060708090a0b0c0d0eff';

async function interop(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [
    'scripts/osdp-interop.ts',
    '--baud',
    '115200',
    '--hold',
    '3',
    ...args,
  ]);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

it('pairs a device, fires its relay, and fails with a key that is not its own', {
  timeout: 120_000,
}, async () => {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [{ address: 0, kind: 'osdp-io' }],
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const paired = await interop('--port', bus.port, '--key', KEY, '--pair', '--relay', '2');
  expect(paired.output).not.toContain('FAILED');
  expect(paired.code).toBe(0);
  expect((await bus.state(0)).history[0]).toMatchObject({ output: 2, on: true });
  const wrong = await interop('--port', bus.port, '--key', KEY.replace('ff', '00'));
  expect(wrong.output).toContain('FAILED is connected: Error: alarm wrongKey');
  expect(wrong.output).not.toContain('stays connected');
  expect(wrong.code).toBe(1);
});
