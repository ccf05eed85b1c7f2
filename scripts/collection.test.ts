import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type CollectionSource, collectionOf, collectionText } from './collection.ts';

const docs = join(import.meta.dirname, '../docs');
const read = (name: string) => readFileSync(join(docs, name), 'utf8');
const openapi = JSON.parse(read('openapi.json')) as CollectionSource;

interface Item {
  request: {
    method: string;
    auth?: { type: string };
    url: { raw: string; variable?: { key: string }[] };
    body?: { raw: string };
  };
}

it('docs/gatehouse.postman_collection.json is of docs/openapi.json (npm run openapi writes both)', () => {
  expect(read('gatehouse.postman_collection.json')).toBe(collectionText(openapi));
});

it('has each operation once, with a body that is JSON and a variable for each part of its path', () => {
  const { item } = collectionOf(openapi) as { item: { item: Item[] }[] };
  const requests = item.flatMap((folder) => folder.item.map(({ request }) => request));
  const named = requests.map(({ method, url }) => `${method} ${url.raw.replaceAll(/:(\w+)/g, '{$1}')}`);
  const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} {{baseUrl}}${path}`),
  );
  expect(named.toSorted()).toEqual(operations.toSorted());
  for (const { url, body } of requests) {
    const steps = [...url.raw.matchAll(/:(\w+)/g)].map(([, name]) => name);
    expect(url.variable?.map(({ key }) => key) ?? []).toEqual(steps);
    if (body) expect(JSON.parse(body.raw)).toBeTypeOf('object');
  }
});

it('sends a token but where none is needed', () => {
  const { item } = collectionOf(openapi) as { item: { item: Item[] }[] };
  const open = item
    .flatMap((folder) => folder.item)
    .filter(({ request }) => request.auth?.type === 'noauth')
    .map(({ request }) => `${request.method} ${request.url.raw}`);
  expect(open).toContain('GET {{baseUrl}}/healthz');
  expect(open).not.toContain('GET {{baseUrl}}/status');
});
