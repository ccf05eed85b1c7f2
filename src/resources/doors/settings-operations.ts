/** Settings of the lock of a door. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { doorId } from './schema.ts';
import { settingsBody, settingsResult } from './settings-schema.ts';
import type { DoorSlice } from './slice.ts';
import { ADMINISTRATORS } from './user-reading.ts';

/** `path` is that of the doors. */
export function settingsOperations(doors: Pick<DoorSlice, 'lockSettings'>, path: string): Operation[] {
  const common = {
    path: `${path}/{doorId}/lock-settings`,
    params: z.object({ doorId }),
    tag: 'Doors',
    access: ADMINISTRATORS,
    result: settingsResult,
    errors: ['NOT_FOUND'],
  } as const;
  return [
    operation({
      ...common,
      id: 'getLockSettings',
      method: 'get',
      summary: 'Read the settings of the lock of a door',
      handler: ({ params }) => ({ body: doors.lockSettings.get(params.doorId) }),
    }),
    operation({
      ...common,
      id: 'setLockSettings',
      method: 'put',
      summary:
        'Set sound, auto-relock, one touch, the limits of wrong codes and the holidays of the lock of a door',
      description:
        'A field that is absent stays as it is; null leaves it to the lock. It is sent until the lock has it: `state`. A lock that does not have a setting refuses that one, and takes the others.',
      body: settingsBody,
      async handler({ params: { doorId }, body, principal, correlationId }) {
        return { body: await doors.lockSettings.set(doorId, body, { principal, correlationId }) };
      },
    }),
  ];
}
