/** A door of a site's file (config/site.schema.json). */
import { z } from 'zod';
import { ieeeAddress, looseId } from '../../platform/http/fields.ts';
import { connectionType } from './openings-schema.ts';
import { accessPointId, doorId, editableFields } from './schema.ts';

export const doorEntry = z
  .strictObject({
    id: doorId.optional().describe('Needed where other entries name the door; drawn when absent'),
    accessPointId: accessPointId
      .optional()
      .describe('Unique on the site; the lowest that is free when absent'),
    ...editableFields,
    mac: ieeeAddress.optional().describe('IEEE address of the lock; once set, only replace-lock changes it'),
    gatewayId: looseId.nullable().optional(),
    networkId: looseId.nullable().optional(),
    connectionType: connectionType.nullable().optional(),
  })
  .refine(
    (entry) => entry.id !== undefined || entry.accessPointId !== undefined,
    'expected an id or an accessPointId, by which the door is found again at the next import',
  )
  .describe('Found by its id, else by its accessPointId; what is absent stays as it is');
export type DoorEntry = z.output<typeof doorEntry>;
