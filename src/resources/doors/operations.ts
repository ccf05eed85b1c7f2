/** The door operations of the interface: 4.4, creation and reads. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ADMINISTRATORS, ROLES } from '../../platform/principal.ts';
import type { Doors } from './doors.ts';
import {
  briefQuery,
  doorHistory,
  doorPage,
  doorPending,
  doorsInBriefPage,
  historyQuery,
  listQuery,
} from './list-schema.ts';
import { settingsOperations, userOperations } from './lock-memory-operations.ts';
import { lockOperations } from './lock-operations.ts';
import { createBody, door, doorId, doorOptionsResult, doorState, updateBody } from './schema.ts';
import type { DoorSlice } from './slice.ts';

const params = z.object({ doorId });
const tag = 'Doors';

/** `segment` is the <product> segment of the paths. */
export function doorOperations(doors: DoorSlice, segment: string): Operation[] {
  const path = `/${segment}/doors`;
  return [
    ...changes(doors, path),
    ...reads(doors, path),
    ...pending(doors, `${path}/{doorId}/pending`),
    ...lockOperations(doors, path),
    ...userOperations(doors, path),
    ...settingsOperations(doors, path),
  ];
}

function changes(doors: Doors, path: string): Operation[] {
  return [
    operation({
      id: 'updateDoor',
      method: 'put',
      path: `${path}/{doorId}`,
      tag,
      summary: 'Update a door',
      description:
        'A field that is absent stays as it is; null clears it. Inside `options` the same holds for `accessInternal`, its `doors` and `interval`, and `outputs`; a list replaces the one before. Groups, schedules, templates and doors that the site does not know are stored, and named in …/state. What travels to the lock is sent until it acknowledges: `configVersion` and `applied`. What a lock that is known cannot carry (`options`, `scheduleId`; `standOpenEnabled` where it cannot stand open) is refused (NOT_SUPPORTED), and nothing of the body is stored then; a door without a lock takes anything, as does an import.',
      access: ['front-desk-admin'],
      params,
      body: updateBody,
      result: door,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'PRECONDITION_FAILED', 'VERSION_CONFLICT', 'NOT_SUPPORTED'],
      async handler({ params, body, editor }) {
        const { door, version } = await doors.update(params.doorId, body, editor);
        return { body: door, etag: String(version) };
      },
    }),
    operation({
      id: 'createDoor',
      method: 'post',
      path,
      tag,
      summary: 'Create a door',
      description: 'Not idempotent: name an `accessPointId`, and a repetition is answered ALREADY_EXISTS.',
      access: ADMINISTRATORS,
      body: createBody,
      result: door,
      errors: ['ALREADY_EXISTS'],
      async handler({ body, caller }) {
        const { door, version } = await doors.create(body, caller);
        return { body: door, etag: String(version) };
      },
    }),
  ];
}

function reads(doors: DoorSlice, path: string): Operation[] {
  const common = { method: 'get', tag, access: ROLES } as const;
  return [
    operation({
      ...common,
      id: 'listDoors',
      path,
      summary: 'List doors, in the order of accessPointId',
      query: listQuery,
      result: doorPage,
      handler: ({ query }) => ({ body: doors.list(query) }),
    }),
    operation({
      ...common,
      id: 'listDoorsInBrief',
      path: `${path}/brief`,
      summary: 'List doors in brief: what a screen shows of each, a thousand in one answer',
      query: briefQuery,
      result: doorsInBriefPage,
      handler: ({ query }) => ({ body: doors.listing.inBrief(query) }),
    }),
    operation({
      ...common,
      id: 'getDoor',
      path: `${path}/{doorId}`,
      summary: 'Read a door',
      params,
      result: door,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { door, version } = doors.get(params.doorId);
        return { body: door, etag: String(version) };
      },
    }),
    operation({
      ...common,
      id: 'getDoorOptions',
      path: `${path}/{doorId}/options`,
      summary: 'Read the options and number of a door, which the door does not show',
      params,
      result: doorOptionsResult,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { body, version } = doors.options(params.doorId);
        return { body, etag: String(version) };
      },
    }),
    operation({
      ...common,
      id: 'getDoorState',
      path: `${path}/{doorId}/state`,
      summary: 'Read what is known of a door beyond its resource',
      params,
      result: doorState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: doors.state(params.doorId) }),
    }),
    operation({
      ...common,
      id: 'getDoorHistory',
      path: `${path}/{doorId}/history`,
      summary: 'Read what the lock of a door reported of its radio and battery, hour by hour',
      description: 'Kept for 90 days, also of a lock that was replaced since.',
      params,
      query: historyQuery,
      result: doorHistory,
      errors: ['NOT_FOUND'],
      handler: ({ params, query }) => ({ body: doors.history(params.doorId, query) }),
    }),
  ];
}

function pending(doors: Doors, path: string): Operation[] {
  const access = ADMINISTRATORS;
  const common = { path, tag, access, params, result: doorPending } as const;
  return [
    operation({
      ...common,
      access: [...access, 'monitor'],
      id: 'getDoorPending',
      method: 'get',
      summary: 'Read what waits for the lock of a door, and the outcome of what was sent',
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: doors.pending(params.doorId) }),
    }),
    operation({
      ...common,
      id: 'cancelDoorPending',
      method: 'delete',
      summary: 'Cancel what waits for the lock of a door',
      description:
        'What travels to the lock is wanted again as the lock acknowledged it last: a change of its own, which is sent too, since the lock may have what was on its way (`sentAt`). With nothing to cancel nothing changes. NOTHING_APPLIED: the lock has acknowledged nothing yet, so there is nothing to go back to. A change of the catalogue cannot be cancelled at a door: with one of the door it travels on, as `catalogue` in the `fields` of the new version; alone it is CATALOGUE_PENDING.',
      errors: ['NOT_FOUND', 'NOTHING_APPLIED', 'CATALOGUE_PENDING'],
      handler: async ({ params, caller }) => ({ body: await doors.cancelPending(params.doorId, caller) }),
    }),
  ];
}
