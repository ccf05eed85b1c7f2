/** The import and the export of a whole site, for the console and the command line. */
import { type Operation, operation } from '../../platform/http/operation.ts';
import { startsJob } from '../../services/jobs/schema.ts';
import { IMPORTERS, type SiteImport } from './import.ts';
import { importBody, importResult, planBody, siteDocument } from './schema.ts';

/** A site of 5,000 doors with long names. */
const DOCUMENT_MAX_BYTES = 8 * 1_024 * 1_024;

export function siteImportOperations(siteImport: SiteImport): Operation[] {
  return [
    operation({
      id: 'exportSite',
      method: 'get',
      path: '/site',
      tag: 'Site',
      summary: 'The site as a document that an import takes back',
      description:
        'Groups, schedules, templates, doors and RS-485 devices as `config/site.schema.json` has them; `gatehouse export` writes it as YAML. Left out are RS-485 devices of which nothing was ever wanted, and those on a bus that the configuration does not have.',
      access: ['service-tool', 'front-desk-admin'],
      result: siteDocument,
      handler: async () => ({ body: await siteImport.exported() }),
    }),
    operation({
      id: 'planImport',
      method: 'post',
      path: '/site/plan',
      tag: 'Site',
      summary: 'Say what the import of a document would change',
      description: 'Nothing is written.',
      access: IMPORTERS,
      body: planBody,
      bodyLimit: DOCUMENT_MAX_BYTES,
      result: importResult,
      errors: ['RELAY_IN_USE', 'VERSION_CONFLICT'],
      handler: async ({ body, caller }) => ({ body: await siteImport.plan(body, caller) }),
    }),
    operation({
      id: 'importSite',
      method: 'post',
      path: '/site/import',
      tag: 'Site',
      summary: 'Import groups, schedules, templates, doors and RS-485 devices, as a job',
      description:
        'Answered 202 once the whole document is found sound. The job writes the catalogue, then reconfigures the doors that refer to what changed in it, then writes the doors of the document, both a few at a time, and last the RS-485 devices. Once the catalogue is written, the doors that refer to it follow whatever ends the job. What the document does not name is left alone, and the same document again changes nothing: after a cancel, a restart of the gateway or a `VERSION_CONFLICT`, which says what is written and what is not, the same import writes the rest. `result` of the finished job: `written`, `counts`, `digest` and `warnings` as in the plan.',
      access: IMPORTERS,
      body: importBody,
      bodyLimit: DOCUMENT_MAX_BYTES,
      ...startsJob,
      errors: ['RELAY_IN_USE', 'VERSION_CONFLICT', 'IN_PROGRESS', 'QUEUE_FULL'],
      handler: async ({ body, caller }) => ({ body: await siteImport.start(body, caller) }),
    }),
  ];
}
