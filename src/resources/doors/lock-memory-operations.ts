/** What is kept in the lock of a door: users, with PINs and cards, and settings. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ADMINISTRATORS } from '../../platform/principal.ts';
import { startsJob } from '../../services/jobs/schema.ts';
import {
  lockUser,
  settingsBody,
  settingsResult,
  userBody,
  userPage,
  userParams,
  userQuery,
  usersCleared,
} from './lock-memory-schema.ts';
import { doorId } from './schema.ts';
import type { DoorSlice } from './slice.ts';

type Doors = Pick<DoorSlice, 'users'>;

const common = { tag: 'Doors', access: ADMINISTRATORS } as const;

/** `path` is that of the doors. */
export function userOperations(doors: Doors, path: string): Operation[] {
  return [...ofLock(doors, `${path}/{doorId}/users`), ...ofUser(doors, `${path}/{doorId}/users/{userId}`)];
}

function ofLock(doors: Doors, path: string): Operation[] {
  const params = z.object({ doorId });
  return [
    operation({
      ...common,
      path,
      params,
      id: 'listLockUsers',
      method: 'get',
      summary: 'List the users of the lock of a door, in the order of their numbers',
      description:
        'Users that are wanted, that are to be removed, and that the lock has reported somebody to have stored at it. Digits are never returned.',
      query: userQuery,
      result: userPage,
      errors: ['NOT_FOUND'],
      handler: ({ params, query }) => ({ body: doors.users.list(params.doorId, query) }),
    }),
    operation({
      ...common,
      path,
      params,
      id: 'clearLockUsers',
      method: 'delete',
      summary: 'Remove all users that are known from the lock of a door',
      description:
        'Before a lock is retired or given away: it keeps its PINs and cards when it leaves its network. They are `removing` until the lock has confirmed each; the list is empty then.',
      result: usersCleared,
      errors: ['NOT_FOUND'],
      async handler({ params: { doorId }, caller }) {
        const removing = await doors.users.clear(doorId, caller);
        return { body: { doorId, removing } };
      },
    }),
    operation({
      ...common,
      path: `${path}/read`,
      params,
      id: 'readLockUsers',
      method: 'post',
      summary: 'Ask the lock of a door which of its users are taken',
      description:
        'As a job: two frames for each user and one for each of its schedules, `progress` in users. Those that somebody stored at the lock are listed as `foreign` then, and those that it has lost, or shows otherwise than they are wanted, are written again. `result`: {doorId, mac, places, taken, holidays, differing: [{userId, what}]}; `what` names pin, card, status, type, weekDays and yearDays. holidays: how many the lock has, null: it keeps none; they are in its settings.',
      ...startsJob,
      errors: ['NOT_FOUND', 'NO_LOCK', 'IN_PROGRESS', 'DEVICE_OFFLINE'],
      handler: async ({ params: { doorId }, caller }) => ({ body: await doors.users.read(doorId, caller) }),
    }),
  ];
}

function ofUser(doors: Doors, path: string): Operation[] {
  const ofOne = { ...common, path, params: userParams, result: lockUser } as const;
  return [
    operation({
      ...ofOne,
      id: 'getLockUser',
      method: 'get',
      summary: 'Read a user of the lock of a door',
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: doors.users.get(params.doorId, params.userId) }),
    }),
    operation({
      ...ofOne,
      id: 'setLockUser',
      method: 'put',
      summary: 'Set the PIN, the card and the times of a user of the lock of a door',
      description:
        'A field that is absent stays as it is; null clears it. It is stored, sealed, and sent until the lock has it: `state`. A user without times of its own may open as the schedule of the door says, or always. NOT_SUPPORTED: the lock is known not to keep it. A door that has no lock yet takes anything.',
      body: userBody,
      errors: ['NOT_FOUND', 'NO_LOCK', 'NOT_SUPPORTED'],
      handler: async ({ params: { doorId, userId }, body, caller }) => ({
        body: await doors.users.set(doorId, userId, body, caller),
      }),
    }),
    operation({
      ...ofOne,
      id: 'removeLockUser',
      method: 'delete',
      summary: 'Remove a user from the lock of a door',
      description:
        'Also one that somebody stored at the lock. It stays `removing` until the lock has confirmed it: until then it may open.',
      errors: ['NOT_FOUND'],
      handler: async ({ params: { doorId, userId }, caller }) => ({
        body: await doors.users.remove(doorId, userId, caller),
      }),
    }),
  ];
}

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
      handler: async ({ params: { doorId }, body, caller }) => ({
        body: await doors.lockSettings.set(doorId, body, caller),
      }),
    }),
  ];
}
