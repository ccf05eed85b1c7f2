/** GET /openapi.json and GET /docs: made, serialised and compressed once, however often they are asked for. */
import { z } from '@hono/zod-openapi';
import { documentPage, type PageDocument, pageOperation } from './document-page.ts';
import { type DocumentInfo, OPENAPI_VERSION, openApiDocument } from './openapi.ts';
import { type Operation, operation, type StoredBytes } from './operation.ts';
import { storedBytes } from './reply.ts';

/** Per address. A generator of clients reads it once; a page that shows it, at each visit. */
const RATE = { perSecond: 1, burst: 10 };

/** As docs/openapi.json keeps it: with line breaks, which compression makes free of charge. */
export function documentText(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** `operations` and the operation that answers their document, which has itself in it. */
export function withDocument(operations: readonly Operation[], info: DocumentInfo): Operation[] {
  const document = () => openApiDocument(served, info);
  const served: Operation[] = [
    ...operations,
    documentOperation(document),
    pageOperation(once(() => documentPage(document() as unknown as PageDocument))),
  ];
  return served;
}

/** `document` is asked at the first call. */
function documentOperation(document: () => object): Operation {
  const stored = once(() => documentText(document()));
  return operation({
    id: 'getOpenApi',
    method: 'get',
    path: '/openapi.json',
    tag: 'Health',
    summary: 'This document',
    access: 'public',
    rate: RATE,
    result: z.looseObject({ openapi: z.string() }),
    handler() {
      return { body: { openapi: OPENAPI_VERSION }, stored: stored() };
    },
  });
}

function once(text: () => string): () => StoredBytes {
  let stored: StoredBytes | undefined;
  return () => {
    stored ??= storedBytes(Buffer.from(text()));
    return stored;
  };
}
