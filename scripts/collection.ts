/**
 * The interface as a collection for Postman, which Bruno and Insomnia import too: format 2.1.0
 * (https://schema.getpostman.com/json/collection/v2.1.0/collection.json).
 */
interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
}

interface Described {
  tags: string[];
  summary: string;
  description?: string;
  security?: object[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { example?: unknown }> };
}

export interface CollectionSource {
  info: { title: string; version: string; description?: string };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Described>>;
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';
/** A name that is reserved for examples (RFC 2606). */
const VARIABLES = [
  { key: 'baseUrl', value: 'https://gatehouse.example:8443' },
  { key: 'token', value: '' },
];

export function collectionOf({ info, tags, paths }: CollectionSource): object {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
  );
  return {
    info: {
      name: `${info.title} ${info.version}`,
      description: `${info.description ?? ''}\n\nSet \`baseUrl\` to the address of the gateway and \`token\` to a token of \`gatehouse token create\`.`,
      schema: SCHEMA,
    },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{token}}', type: 'string' }] },
    variable: VARIABLES,
    item: tags.map(({ name, description = '' }) => ({
      name,
      description,
      item: operations
        .filter(({ described }) => described.tags.includes(name))
        .map(({ path, method, described }) => itemOf(path, method, described)),
    })),
  };
}

function itemOf(path: string, method: string, described: Described): object {
  const { summary, description = '', security = [], parameters = [], requestBody } = described;
  const body = requestBody?.content['application/json'];
  const steps = path.slice(1).replaceAll(/\{(\w+)\}/g, ':$1');
  const variable = valuesOf(parameters, 'path');
  const query = valuesOf(parameters, 'query').map((value) => ({ ...value, disabled: true }));
  return {
    name: `${summary} (${method} ${path})`,
    request: {
      method,
      description,
      ...(security.length === 0 && { auth: { type: 'noauth' } }),
      header: body === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }],
      url: {
        raw: `{{baseUrl}}/${steps}`,
        host: ['{{baseUrl}}'],
        path: steps.split('/'),
        ...(query.length > 0 && { query }),
        ...(variable.length > 0 && { variable }),
      },
      ...(body !== undefined && {
        body: {
          mode: 'raw',
          raw: JSON.stringify(body.example ?? {}, null, 2),
          options: { raw: { language: 'json' } },
        },
      }),
    },
    response: [],
  };
}

const valuesOf = (parameters: readonly Parameter[], place: string) =>
  parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name, description = '' }) => ({ key: name, value: '', description }));

/** As it is checked in. */
export const collectionText = (source: CollectionSource) =>
  `${JSON.stringify(collectionOf(source), null, 2)}\n`;
