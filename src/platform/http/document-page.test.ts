import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lanApp } from '../../../test/things-app.ts';
import { documentPage, type PageDocument } from './document-page.ts';

const ROOT = join(import.meta.dirname, '../../..');
const document = JSON.parse(readFileSync(join(ROOT, 'docs/openapi.json'), 'utf8')) as PageDocument;
const page = documentPage(document);

it('is served as HTML that may run no script and load nothing but its own style', async () => {
  const answer = await lanApp({}).fetch(new Request('https://gate/docs'));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const text = await answer.text();
  const [, style = ''] = /<style>([^<]*)<\/style>/.exec(text) ?? [];
  const digest = createHash('sha256').update(style).digest('base64');
  const policy = answer.headers.get('content-security-policy') ?? '';
  expect(policy).toContain(`default-src 'none'; style-src 'sha256-${digest}'`);
  expect(policy).not.toContain('unsafe');
});

it('has each operation with a command to try, and each schema that one refers to', () => {
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  expect(operations.length).toBeGreaterThan(80);
  const ids = new Set([...page.matchAll(/<[a-z0-9]+ id="([^"]+)"/g)].map(([, id]) => id));
  for (const { operationId } of operations) expect(ids, operationId).toContain(operationId);
  for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(target);
  expect(page.match(/curl --cacert/g)).toHaveLength(operations.length);
  expect(page).toContain('-X PUT');
});

it('closes what it opens, and has neither script nor another origin', () => {
  const open: string[] = [];
  for (const [, end, name = ''] of page.matchAll(/<(\/?)([a-z0-9]+)[^>]*>/g)) {
    if (name === 'meta') continue;
    if (end === '') open.push(name);
    else if (name !== 'p' || open.at(-1) === 'p') expect(open.pop()).toBe(name);
  }
  expect(open).toEqual([]);
  expect(page).not.toMatch(/<script|\son\w+=|\ssrc=|javascript:|href="(?!#|openapi\.json"|\/#\/api")/);
});

it('shows text of the document as text', () => {
  const hostile = `<script>alert(1)</script>" ' \`<b>\``;
  const text = documentPage({
    info: { title: hostile, version: hostile, description: hostile },
    tags: [{ name: 'x', description: hostile }],
    components: { schemas: { X: { description: hostile, enum: [hostile] } } },
    paths: {
      [`/${hostile}`]: {
        put: {
          operationId: 'x',
          tags: ['x'],
          summary: hostile,
          requestBody: { content: { 'application/json': { example: { a: hostile } } } },
          responses: { 200: { description: hostile, content: { 'application/json': { example: hostile } } } },
        },
      },
    },
  });
  expect(text).not.toContain('<script');
  // In a shell the text stays within its quotes.
  expect(text).toContain(String.raw`'\''`);
});
