/**
 * The examples of README.md, docs/interface.md and docs/encoder-protocol.md against what makes or reads such a thing. Shell:
 * test/operations-page.test.ts has docs/operations.md, test/independent/encoder.test.ts the worked example.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { MESSAGES } from '../drivers/encoder/messages.ts';
import { ERROR_STATUS } from '../src/platform/errors.ts';
import { writeRequestStatus } from '../src/resources/writes/schema.ts';
import { withReplayed, writeProgressEvent } from '../src/services/events/cloud-event.ts';
import { openTestGateway } from './gateway.ts';
import { shellBlocks } from './shell-blocks.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Example {
  heading: string;
  value: Record<string, unknown>;
}

/** A block with a message in each line has several. */
function examplesOf(file: string): Example[] {
  const found: Example[] = [];
  let heading = '';
  for (const [, title, block] of read(file).matchAll(/^#+ (.*)$|^```json\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    if (block === undefined) continue;
    const texts = block.startsWith('{\n') ? [block] : block.trim().split('\n');
    for (const text of texts) found.push({ heading, value: JSON.parse(text) });
  }
  return found;
}

describe('docs/encoder-protocol.md', () => {
  const examples = examplesOf('docs/encoder-protocol.md');
  const under = (title: string) =>
    examples.filter(({ heading }) => heading === title).map(({ value }) => value);

  it('has no example that is not compared', () => {
    expect([...new Set(examples.map(({ heading }) => heading))]).toEqual([
      'The answer',
      'up/status',
      'down/write',
      'up/job',
      'up/progress',
      'down/probe, up/presence',
      'down/hello, down/ack, down/cancel',
    ]);
  });

  it.each([
    ['up/status', [MESSAGES.birth]],
    ['down/write', [MESSAGES.write]],
    ['up/job', [MESSAGES.job]],
    ['up/progress', [MESSAGES.progress]],
    ['down/probe, up/presence', [MESSAGES.probe, MESSAGES.presence]],
    ['down/hello, down/ack, down/cancel', [MESSAGES.hello, MESSAGES.ack, MESSAGES.cancel]],
  ])('%s is read whole', (title, schemas) => {
    const values = under(title);
    expect(values).toHaveLength(schemas.length);
    for (const [index, schema] of schemas.entries())
      expect(schema.parse(values[index])).toEqual(values[index]);
  });

  it('shows the fields that a registration answers with', () => {
    const source = read('src/resources/encoders/registration.ts');
    const [configuration = {}, credentials = {}] = under('The answer');
    for (const field of [...Object.keys(configuration), ...Object.keys(credentials)])
      expect(source).toMatch(new RegExp(`^ {4}${field}\\b`, 'm'));
    expect(Object.keys(configuration)).toHaveLength(8);
    expect(Object.keys(credentials)).toHaveLength(4);
  });
});

describe('docs/interface.md', () => {
  const [request, event, refusal, ...others] = examplesOf('docs/interface.md').map(({ value }) => value);

  it('has no example that is not compared', () => {
    expect(others).toEqual([]);
  });

  it.skipIf(spawnSync('sh', ['-c', 'command -v curl']).status !== 0)(
    'begins with a call that is answered, and has no other command',
    async () => {
      const http = { listen: '127.0.0.1:0', names: ['gatehouse.example'] };
      const { gateway, folder, dataDirectory, token } = await openTestGateway({ http });
      const blocks = shellBlocks(join(ROOT, 'docs/interface.md')).filter((block) => !/^id: /.test(block));
      expect(blocks).toEqual([expect.stringMatching(/^curl .* https:\/\/gatehouse\.example:8443\/encoder$/)]);
      const { port } = new URL(gateway.baseUrl);
      writeFileSync(join(folder, '.curlrc'), `connect-to = "gatehouse.example:8443:127.0.0.1:${port}"\n`);
      const env = { PATH: process.env.PATH, CURL_HOME: folder, TOKEN: await token('pms') };
      const cwd = join(dataDirectory, 'pki');
      const { stdout } = await promisify(execFile)('bash', ['-euc', blocks.join('\n')], { cwd, env });
      expect(JSON.parse(stdout)).toMatchObject({ items: [] });
    },
  );

  it('shows a write request as it is answered', () => {
    expect(writeRequestStatus.parse(request)).toEqual(request);
  });

  it('shows an event as it is sent', () => {
    const { data, source, time, sequence, correlationid } = event as Record<string, never>;
    const [, , systemId = '', , encoderId = ''] = String(source).split('/');
    const progress = { ...Object(data), encoderId, jobId: 'any', correlationId: correlationid } as never;
    const recorded = { systemId, at: Date.parse(time ?? ''), clockSynchronised: true };
    const { body } = writeProgressEvent(progress, { sequence: Number(sequence) }, recorded);
    expect({ ...JSON.parse(withReplayed(body, false)), id: event?.id }).toEqual(event);
  });

  it('shows an error with a code that there is', () => {
    expect(Object.keys(refusal ?? {})).toEqual(['error', 'message', 'correlationId', 'details']);
    expect(Object.keys(ERROR_STATUS)).toContain(refusal?.error);
  });
});

it('README.md names scripts of package.json alone', () => {
  const { scripts } = JSON.parse(read('package.json'));
  const named = [...read('README.md').matchAll(/\bnpm (?:run (\w[\w:]*)|(start|test|cit)\b)/g)];
  expect(named.length).toBeGreaterThan(4);
  for (const [, script, own] of named)
    expect(scripts).toHaveProperty(script ?? (own === 'cit' ? 'test' : (own ?? '')));
});
