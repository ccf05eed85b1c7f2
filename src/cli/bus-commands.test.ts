import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { testShell } from '../../test/shell.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { run } from './program.ts';

const GATEHOUSE_IO = readFileSync(
  join(import.meta.dirname, '../../config/profiles/gatehouse-io.yaml'),
  'utf8',
);

describe('gatehouse bus check-profile', () => {
  it('reports the mistakes of a file to people and programs', async () => {
    const file = join(temporaryFolder(), 'mine.yaml');
    writeFileSync(file, GATEHOUSE_IO.replace('product:', 'produkt:'));
    const shell = testShell();
    expect(await run(['bus', 'check-profile', file], shell)).toBe(2);
    expect(shell.written.stderr).toMatch(
      /mine\.yaml:4:1: unknown setting "produkt" \(did you mean "product"\?\)/,
    );
    expect(await run(['bus', 'check-profile', file, '--json'], shell)).toBe(2);
    expect(JSON.parse(shell.written.stdout)).toMatchObject({
      valid: false,
      mistakes: [{ line: 1 }, { line: 4 }],
    });
  });

  it('takes names as well', async () => {
    const shell = testShell();
    expect(await run(['bus', 'check-profile', 'waveshare-relay-8'], shell)).toBe(0);
    expect(shell.written.stdout).toMatch(/waveshare-relay-8\.yaml is valid: Waveshare Modbus RTU Relay\n/);
  });
});
