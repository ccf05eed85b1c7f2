import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type CollectionSource, collectionOf, collectionText } from './collection.ts';
import { type SettingsSource, settingsFieldsText } from './settings-fields.ts';

const docs = join(import.meta.dirname, '../docs');
const read = (name: string) => readFileSync(join(docs, name), 'utf8');
const openapi = JSON.parse(read('openapi.json')) as CollectionSource & SettingsSource;

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

it('src/console/rs485-fields.json is of docs/openapi.json too, and a setting that is new gets a field', () => {
  expect(read('../src/console/rs485-fields.json')).toBe(settingsFieldsText(openapi));
  const { schemas } = openapi.components;
  const properties = {
    deviceId: { type: 'string' },
    hwId: { description: 'Read-only; ignored' },
    mode: { type: ['string', 'null'], enum: ['day', 'night'], description: 'When' },
  };
  const more = { components: { schemas: { ...schemas, Rs485DeviceUpdate: { properties } } } };
  expect(JSON.parse(settingsFieldsText(more))).toEqual({
    mode: { kind: 'string', canBeNull: true, description: 'When', choices: 'day night' },
  });
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
