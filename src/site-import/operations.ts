/** The import over the admin socket, for the command line. */
import { type Operation, operation } from '../http/operation.ts';
import type { SiteImport } from './import.ts';
import { importBody, importResult } from './schema.ts';

/** A site of 5,000 doors with long names. */
const DOCUMENT_MAX_BYTES = 8 * 1_024 * 1_024;

export function siteImportOperations(siteImport: SiteImport): Operation[] {
  return [
    operation({
      id: 'importSite',
      method: 'post',
      path: '/local/import',
      tag: 'Site',
      summary: 'Import groups, schedules, templates, doors and RS-485 devices',
      description:
        'All of it or nothing. What the document does not name is left alone; the same document again changes nothing.',
      access: 'local',
      body: importBody,
      bodyLimit: DOCUMENT_MAX_BYTES,
      status: 200,
      result: importResult,
      errors: ['RELAY_IN_USE', 'VERSION_CONFLICT'],
      handler: async ({ body, principal, correlationId }) => ({
        body: await siteImport.run(body, { principal, correlationId }),
      }),
    }),
  ];
}
