/** DCON modules that a site adds by a file. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { moduleJsonSchema } from '../../../drivers/dcon/module-types.ts';
import { testShell } from '../../../test/shell.ts';
import { run } from '../../cli/program.ts';
import { FileError } from '../yaml/yaml-file.ts';
import { parseConfig } from './config-file.ts';
import { linkOptions, readModuleType } from './profiles.ts';

const FOLDER = join(import.meta.dirname, '../../../config/profiles');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-modules-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a DCON module of a site', () => {
  const MODULE = `protocol: dcon
product: Acme 62
names: ['A62', 'A62D']
source: Acme, A62 manual, 3
outputs: { byte: 0, count: 4 }
inputs: { byte: 1, count: 8 }
watchdog: host
`;
  const written = (text: string) => {
    writeFileSync(join(folder, 'acme.yaml'), text);
    return join(folder, 'acme.yaml');
  };
  const mistakes = (text: string) => {
    try {
      readModuleType(written(text));
      return 'none';
    } catch (error) {
      if (error instanceof FileError) return error.message;
      throw error;
    }
  };

  it.each([
    [
      'has the name of one that comes with Gatehouse',
      "['A62', 'A62D']",
      "['7060']",
      /names\[0\]: 7060 is the name of the I-7060/,
    ],
    ['has a name twice', "['A62', 'A62D']", "['A62', 'A62']", /A62 is there twice/],
    ['has inputs and outputs in one byte', 'byte: 1', 'byte: 0', /inputs.byte: is that of outputs/],
    ['has no outputs for its watchdog', 'outputs: { byte: 0, count: 4 }\n', '', /watchdog: needs outputs/],
    ['has more channels than a byte', 'count: 4', 'count: 9', /outputs.count/],
    ['has a watchdog there is not', 'watchdog: host', 'watchdog: none', /watchdog/],
  ])('is none where it %s', (_, from, to, message) => {
    expect(mistakes(MODULE.replace(from, to))).toMatch(message);
  });

  it('goes to the driver by the options of its link, and is checked with them and by check-profile', async () => {
    const file = written(MODULE);
    const text = `links:\n  - id: bus-2\n    protocol: dcon\n    options: { port: /dev/null, moduleTypes: [acme.yaml] }\n`;
    const parsed = () => parseConfig(text, join(folder, 'gatehouse.yaml'), { checkFiles: true }).links[0];
    const link = parsed();
    if (!link) throw new Error('there is no link');
    expect(linkOptions(link)).toMatchObject({
      moduleTypes: [file],
      types: [
        { product: 'Acme 62', names: ['A62', 'A62D'], watchdog: 'host', resetStatus: true, latch: false },
      ],
    });
    const shell = testShell();
    expect(await run(['bus', 'check-profile', file], shell)).toBe(0);
    expect(shell.written.stdout).toContain('acme.yaml is valid: Acme 62');
    written(MODULE.replace('byte: 1', 'byte: 0'));
    expect(parsed).toThrow(/links\[0\].options.moduleTypes\[0\]: the module is wrong in line \d+/);
  });

  it('has the names that no other file of its bus has', () => {
    written(MODULE);
    writeFileSync(join(folder, 'later.yaml'), MODULE.replace("['A62', 'A62D']", "['A64', 'A62D']"));
    const options = '{ port: /dev/null, moduleTypes: [acme.yaml, later.yaml] }';
    const text = `links:\n  - id: bus-2\n    protocol: dcon\n    options: ${options}\n`;
    const parsed = () => parseConfig(text, join(folder, 'gatehouse.yaml'), { checkFiles: true });
    expect(parsed).toThrow(
      /moduleTypes\[1\]: describes the module A62D, as .*acme.yaml does: leave it in one/,
    );
    writeFileSync(join(folder, 'later.yaml'), MODULE.replace("['A62', 'A62D']", "['A64']"));
    expect(parsed).not.toThrow();
  });

  it('has a JSON schema (node scripts/schema.ts)', () => {
    const schema = JSON.parse(readFileSync(join(FOLDER, 'dcon-module.schema.json'), 'utf8'));
    expect(schema).toEqual(JSON.parse(JSON.stringify(moduleJsonSchema())));
  });
});
