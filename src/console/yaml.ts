/**
 * A site's file in YAML, as `gatehouse import` reads it (src/platform/yaml/yaml-file.ts): version 1.2 with the core schema, and
 * without aliases. Loaded with the first file that is no JSON.
 */
import { CORE_SCHEMA, load, YAMLException } from 'js-yaml';

/** The deepest field has ten levels. */
const NESTING_MAX = 32;

/** Throws SyntaxError, with the place as line:column. */
export function readYaml(text: string): unknown {
  try {
    return load(text, { schema: CORE_SCHEMA, maxAliases: 0, maxDepth: NESTING_MAX });
  } catch (error) {
    if (error instanceof YAMLException)
      throw new SyntaxError(error.toString(true).replace('YAMLException: ', ''));
    throw error;
  }
}
