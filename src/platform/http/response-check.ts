/** Compares an answer with what its operation declares, for tests and the demo: a mismatch is a fault of ours. */
import { GatehouseError } from '../errors.ts';
import { errorsOf, type Operation } from './operation.ts';
import { jsonPointer } from './pointer.ts';

/** Throws when `body` does not fit the declared result, or has a field the result does not declare. */
export function checkResult(operation: Operation, body: unknown): void {
  const sent: unknown = JSON.parse(JSON.stringify(body));
  const parsed = operation.result.safeParse(sent);
  if (!parsed.success) {
    throw new Error(`${operation.id} answered what it does not declare: ${parsed.error.message}`);
  }
  const undeclared = firstUndeclared(sent, parsed.data, []);
  if (undeclared) throw new Error(`${operation.id} answered a field it does not declare: ${undeclared}`);
}

/** Throws when `error` is a code the operation does not declare. */
export function checkError(operation: Operation, error: unknown): void {
  if (error instanceof GatehouseError && !errorsOf(operation).includes(error.code)) {
    throw new Error(`${operation.id} answered ${error.code}, which it does not declare`, { cause: error });
  }
}

/** Schemas drop what they do not know: what is sent and not in the parsed value is undeclared. */
function firstUndeclared(sent: unknown, parsed: unknown, path: PropertyKey[]): string | undefined {
  if (typeof sent !== 'object' || sent === null) return undefined;
  for (const [key, value] of Object.entries(sent)) {
    const here = [...path, key];
    if (typeof parsed !== 'object' || parsed === null || !Object.hasOwn(parsed, key))
      return jsonPointer(here);
    const deeper = firstUndeclared(value, (parsed as Record<string, unknown>)[key], here);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}
