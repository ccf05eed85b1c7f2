/**
 * Every operation of the interface, in one list: gateway.ts gives it the parts that answer, the document needs none.
 * With gateway.ts, services.ts, field-resources.ts and encoder-resources.ts, the only file that knows several slices.
 */
import { documentText, withDocument } from '../platform/http/document-operation.ts';
import { healthOperations } from '../platform/http/health.ts';
import { openApiDocument } from '../platform/http/openapi.ts';
import type { Operation } from '../platform/http/operation.ts';
import { accessOperations } from '../resources/access/operations.ts';
import { doorOperations } from '../resources/doors/operations.ts';
import { encoderOperations } from '../resources/encoders/operations.ts';
import { networkOperations } from '../resources/networks/operations.ts';
import { rs485Operations } from '../resources/rs485/operations.ts';
import { siteImportOperations } from '../resources/site-import/operations.ts';
import { writeOperations } from '../resources/writes/operations.ts';
import { zgateLocalOperations } from '../resources/zgates/local-operations.ts';
import { zgateOperations } from '../resources/zgates/operations.ts';
import { auditOperations } from '../services/audit/operations.ts';
import { authOperations } from '../services/auth/operations.ts';
import { backupOperations } from '../services/backup/operations.ts';
import { catalogueOperations } from '../services/catalogue/operations.ts';
import { eventOperations } from '../services/events/operations.ts';
import { jobOperations } from '../services/jobs/operations.ts';
import { startsJob } from '../services/jobs/schema.ts';
import { metricsOperations } from '../services/metrics/operations.ts';
import { statusOperations } from '../services/status/operations.ts';
import { reloadOperations } from './reload/operations.ts';
import { supportOperations } from './support/operations.ts';
import { VERSION } from './version.ts';

export interface Parts {
  ready: Parameters<typeof healthOperations>[0];
  autonomyMs: Parameters<typeof healthOperations>[1];
  encoders: Parameters<typeof encoderOperations>[0];
  registration: Parameters<typeof encoderOperations>[1];
  writes: Parameters<typeof writeOperations>[0];
  doors: Parameters<typeof doorOperations>[0];
  access: Parameters<typeof accessOperations>[0];
  rs485: Parameters<typeof rs485Operations>[0];
  zgates: Parameters<typeof zgateOperations>[0];
  networks: Parameters<typeof networkOperations>[0];
  jobs: Parameters<typeof jobOperations>[0];
  backups: Parameters<typeof backupOperations>[0];
  catalogue: Parameters<typeof catalogueOperations>[0];
  siteImport: Parameters<typeof siteImportOperations>[0];
  configuration: Parameters<typeof reloadOperations>[0];
  streams: Parameters<typeof eventOperations>[0];
  audit: Parameters<typeof auditOperations>[0];
  metrics: Parameters<typeof metricsOperations>[0];
  auth: Parameters<typeof authOperations>[0];
  status: Parameters<typeof statusOperations>[0];
  names: Parameters<typeof statusOperations>[1];
  support: Parameters<typeof supportOperations>[0];
}

/** `productSegment` is the <product> of the interface specification's door paths. */
export function interfaceOperations(parts: Parts, productSegment = 'access'): Operation[] {
  return [
    ...healthOperations(parts.ready, parts.autonomyMs),
    ...encoderOperations(parts.encoders, parts.registration),
    ...writeOperations(parts.writes),
    ...doorOperations(parts.doors, productSegment),
    ...accessOperations(parts.access, productSegment),
    ...rs485Operations(parts.rs485),
    ...zgateOperations(parts.zgates),
    ...zgateLocalOperations(parts.zgates),
    ...networkOperations(parts.networks),
    ...catalogueOperations(parts.catalogue, productSegment),
    ...siteImportOperations(parts.siteImport),
    ...reloadOperations(parts.configuration),
    ...eventOperations(parts.streams),
    ...auditOperations(parts.audit),
    ...authOperations(parts.auth),
    ...jobOperations(parts.jobs),
    ...backupOperations(parts.backups, startsJob),
    ...statusOperations(parts.status, parts.names),
    ...metricsOperations(parts.metrics),
    ...supportOperations(parts.support),
  ];
}

/** The OpenAPI document as docs/openapi.json keeps it: byte for byte what is served, unless the configuration moves paths. */
export function interfaceDocument(): string {
  // Handlers reach their part only when called, and describing an operation calls none.
  const operations = interfaceOperations({} as Parts).filter(({ access }) => access !== 'local');
  const info = { version: VERSION, basePath: '' };
  return documentText(openApiDocument(withDocument(operations, info), info));
}
