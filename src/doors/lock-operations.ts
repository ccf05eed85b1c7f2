/** What is done with the lock of a door. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../http/operation.ts';
import { type Role, TECHNICIANS } from '../principal.ts';
import { firmwareBody, replaceLockBody, unlockResult } from './lock-schema.ts';
import { door, doorId } from './schema.ts';
import type { DoorSlice } from './slice.ts';

const params = z.object({ doorId });
const tag = 'Doors';
const ADMINISTRATORS: readonly [Role, ...Role[]] = ['front-desk-admin', 'service-tool'];

/** `path` is that of the doors; `job` the schema of a job. */
export function lockOperations(doors: DoorSlice, path: string, job: z.ZodType): Operation[] {
  return [
    operation({
      id: 'unlockDoor',
      method: 'post',
      path: `${path}/{doorId}/unlock`,
      tag,
      summary: 'Unlock a door now',
      description:
        'Has the lock unlock, or fires the relay of the RS-485 device that has this doorId; both lock again by themselves. Each request is sent once at most, within 10 s or not at all, and is never queued or sent again by itself. 503 DEVICE_OFFLINE: nothing was sent. While one is under way at a door another is refused (IN_PROGRESS), not joined to it: its caller would be told of a door that may have locked again.',
      access: ADMINISTRATORS,
      params,
      status: 200,
      result: unlockResult,
      errors: ['NOT_FOUND', 'NO_LOCK', 'NO_RELAY', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, principal, correlationId, isGone }) => ({
        body: await doors.unlock(params.doorId, { principal, correlationId, isGone }),
      }),
    }),
    operation({
      id: 'replaceLock',
      method: 'post',
      path: `${path}/{doorId}/replace-lock`,
      tag,
      summary: 'Put another lock in the place of that of a door',
      description:
        'The door keeps its id, settings and history; `lockId` is a new one, and all that is wanted goes to the new lock. The door that the new lock got when it joined disappears; one of which more is wanted is refused (ALREADY_EXISTS). A lock that has not joined yet is waited for. The one it has already: nothing changes.',
      access: ADMINISTRATORS,
      params,
      body: replaceLockBody,
      status: 200,
      result: door,
      errors: ['NOT_FOUND', 'PRECONDITION_FAILED', 'ALREADY_EXISTS'],
      async handler({ params, body, principal, correlationId, ifMatch }) {
        const caller = { principal, correlationId, ifMatch };
        const { door, version } = await doors.replaceLock(params.doorId, body, caller);
        return { body: door, etag: String(version) };
      },
    }),
    operation({
      id: 'updateLockFirmware',
      method: 'post',
      path: `${path}/{doorId}/firmware`,
      tag,
      summary: 'Give a lock new firmware',
      description:
        'As a job, out of a file in `firmwareDirectory` of the configuration; nothing is ever downloaded. One lock of a network at a time. The lock fetches the file in its own time, `progress` in percent; what broke off goes on where it was when it is started again. BATTERY_LOW: its battery is too low, or not known. `result` of the finished job: {doorId, mac, file, zigbeeFirmwareVersion}.',
      access: TECHNICIANS,
      params,
      body: firmwareBody,
      status: 202,
      result: job,
      errors: ['NOT_FOUND', 'NO_LOCK', 'BATTERY_LOW', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, principal, correlationId }) => ({
        body: await doors.updateFirmware(params.doorId, body, { principal, correlationId }),
      }),
    }),
  ];
}
