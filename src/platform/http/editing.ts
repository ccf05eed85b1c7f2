/** What every update of a resource has in common: read-only fields, the id in the body, If-Match. */
import { z } from '@hono/zod-openapi';
import { GatehouseError } from '../errors.ts';

/**
 * Fields of the resource a client may send back as it read them: ignored, so that a resource can be read, changed and
 * put. Fields the resource does not have stay UNKNOWN_FIELD.
 */
export function readOnlyFields(
  resource: Record<string, unknown>,
  writable: readonly string[],
): Record<string, z.ZodOptional<z.ZodUnknown>> {
  const names = Object.keys(resource).filter((name) => !writable.includes(name));
  return Object.fromEntries(
    names.map((name) => [name, z.unknown().optional().openapi({ description: 'Read-only; ignored' })]),
  );
}

/** Throws ID_MISMATCH when the body names another resource than the path. `field` is the id's name in the body. */
export function assertSameId(field: string, inBody: string | undefined, inPath: string): void {
  if (inBody === undefined || inBody.toLowerCase() === inPath.toLowerCase()) return;
  throw new GatehouseError('ID_MISMATCH', `The body says ${field} ${inBody}, the path says ${inPath}.`, {
    details: [{ path: `/${field}`, code: 'ID_MISMATCH', message: `expected ${inPath}` }],
  });
}

/**
 * RFC 9110, 13.1.1: `*` matches whatever exists; a weak tag never matches. `revision` is undefined for what does not
 * exist. Throws PRECONDITION_FAILED.
 */
export function assertIfMatch(ifMatch: string | undefined, revision: number | undefined): void {
  if (ifMatch === undefined) return;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (revision !== undefined && (tags.includes('*') || tags.includes(`"${revision}"`))) return;
  throw new GatehouseError(
    'PRECONDITION_FAILED',
    'It was changed since it was read: read it again, then repeat the change on what it is now.',
  );
}
