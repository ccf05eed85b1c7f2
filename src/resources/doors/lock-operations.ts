/** What is done with the lock of a door. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { ADMINISTRATORS, TECHNICIANS } from '../../platform/principal.ts';
import { startsJob } from '../../services/jobs/schema.ts';
import {
  firmwareBody,
  lockResult,
  lockSwapResult,
  replaceLockBody,
  retiredLock,
  retireLockQuery,
  rfPinBody,
  rfPinResult,
  standOpenBody,
  standOpenResult,
  swapLockBody,
  unlockResult,
} from './lock-schema.ts';
import { door, doorId } from './schema.ts';
import type { DoorSlice } from './slice.ts';

const params = z.object({ doorId });
const tag = 'Doors';

/** `path` is that of the doors. */
export function lockOperations(doors: DoorSlice, path: string): Operation[] {
  return [
    ...actuations(doors, path),
    ...standOpen(doors, `${path}/{doorId}/stand-open`),
    ...rfPin(doors, `${path}/{doorId}/rf-pin`),
    ...lockCare(doors, path),
    ...retirement(doors, path),
  ];
}

function retirement(doors: DoorSlice, path: string): Operation[] {
  const common = {
    method: 'delete',
    tag,
    access: ADMINISTRATORS,
    params,
    result: door,
  } as const;
  const errors = ['NOT_FOUND', 'PRECONDITION_FAILED', 'IN_USE', 'IN_PROGRESS'] as const;
  return [
    operation({
      ...common,
      id: 'retireDoor',
      path: `${path}/{doorId}`,
      summary: 'Remove a door for good',
      description:
        'Answered with what it was, which the audit keeps. IN_USE: it has a lock or a relay, stands open, or the options of another door name it.',
      errors,
      handler: async ({ params, editor }) => ({ body: await doors.retire(params.doorId, editor) }),
    }),
    operation({
      ...common,
      id: 'retireLock',
      path: `${path}/{doorId}/zigbee-lock`,
      summary: 'Remove the Zigbee lock of a door for good; the door stays',
      description:
        'The lock is asked to leave its network, which takes up to 9 s; `leave` of the answer says whether it has confirmed that. A lock that does not answer is removed all the same: it is asked again when it is heard, and does not come back without a join window. When it joins again it gets a door of its own. IN_USE: the door stands open. CONFIRMATION_NEEDED: the gateway has to lock the lock, and the lock has not shown that it is locked: the door may stand open.',
      query: retireLockQuery,
      result: retiredLock,
      errors: [...errors, 'NO_LOCK', 'CONFIRMATION_NEEDED'],
      async handler({ params, query, editor }) {
        const isConfirmed = query.confirm === 'true';
        const retired = await doors.retireLock(params.doorId, isConfirmed, editor);
        const { door, version, leave, usersLeft } = retired;
        return { body: { ...door, leave, usersLeft }, etag: String(version) };
      },
    }),
  ];
}

function actuations(doors: DoorSlice, path: string): Operation[] {
  const common = { method: 'post', tag, access: ADMINISTRATORS, params } as const;
  return [
    operation({
      ...common,
      id: 'unlockDoor',
      path: `${path}/{doorId}/unlock`,
      summary: 'Unlock a door now',
      description:
        'Has the lock unlock, or fires the relay of the RS-485 device that has this doorId. The relay lets go by itself. A lock locks again by itself where it is known to (`relock` of …/state); one that does not, or does not report within 10 s that it did, is sent lock commands by Gatehouse until it has shown that it is locked, also after a restart. Each request is sent once at most, to a lock within 10 s, to a relay within 5 s, or not at all, and is never queued or sent again by itself. 503 DEVICE_OFFLINE: nothing was sent. While one is under way at a door another is refused (IN_PROGRESS), not joined to it: the answer could describe a door that has locked again meanwhile.',
      result: unlockResult,
      errors: [
        'NOT_FOUND',
        'NO_LOCK',
        'NO_RELAY',
        'WATCHDOG_NOT_PROVEN',
        'IN_PROGRESS',
        'STANDS_OPEN',
        'PIN_REQUIRED',
        'QUEUE_FULL',
        'DEVICE_OFFLINE',
      ],
      handler: async ({ params, caller, arrivedAt, isGone, hungUp }) => ({
        body: await doors.unlock(params.doorId, { ...caller, arrivedAt, isGone, hungUp }),
      }),
    }),
    operation({
      ...common,
      id: 'lockDoor',
      path: `${path}/{doorId}/lock`,
      summary: 'Lock a door now',
      description:
        'Has the lock lock, and says what it showed. A door that stands open is ended with it. Never refused because something else is under way. Each request is sent once; where Gatehouse has to lock the door anyway, the request joins that attempt, which is repeated until the lock has shown that it is locked. A lock that sleeps may take 20 s: after 9 s the answer is unknown while the command goes on, and `lastLock` of …/state has the outcome. While the network moves to another channel the command waits for the end of that, and the answer after 9 s is waiting. NO_LOCK: the door has no lock; a relay lets go by itself. 503 DEVICE_OFFLINE: nothing was sent. 503 STORAGE_UNAVAILABLE: the message says whether the lock command was sent; the audit entry follows. The request is carried out also when its Idempotency-Key cannot be stored, and again when it was cut short: a repetition may lock twice.',
      result: lockResult,
      mayRunTwice: true,
      errors: ['NOT_FOUND', 'NO_LOCK', 'PIN_REQUIRED', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, caller, isGone }) => ({
        body: await doors.lock(params.doorId, { ...caller, isGone }),
      }),
    }),
  ];
}

function standOpen(doors: DoorSlice, path: string): Operation[] {
  const common = { path, tag, access: ADMINISTRATORS, params, result: standOpenResult } as const;
  return [
    operation({
      ...common,
      id: 'standDoorOpen',
      method: 'post',
      summary: 'Have a door stand open for a time',
      description:
        'Has the lock stay unlocked, or holds the relay, until the time that is named, 24 h ahead at most; then the lock is sent lock commands until it has shown that it is locked, and the relay opens within 20 s. It ends also across restarts and with a wrong clock, never later than that. Asked again, it has another end. STAND_OPEN_NOT_ALLOWED: the door has no standOpenEnabled, or its template forbids it. 503 DEVICE_OFFLINE: the caller hung up, the door was given another lock or relay, or its time was over, before it was sent; nothing was sent. `outcome` waiting: nothing was sent yet; that is tried for 15 minutes, and never later. A lock that sleeps may take a minute: after 9 s the answer is unknown while the command goes on, and `standingOpen` of …/state has the outcome.',
      body: standOpenBody,
      errors: [
        'NOT_FOUND',
        'NO_LOCK',
        'NO_RELAY',
        'WATCHDOG_NOT_PROVEN',
        'STAND_OPEN_NOT_ALLOWED',
        'NOT_SUPPORTED',
        'PIN_REQUIRED',
        'IN_PROGRESS',
        'DEVICE_OFFLINE',
      ],
      async handler({ params: { doorId }, body, caller, arrivedAt, isGone }) {
        const delivery = await doors.standOpen.begin(doorId, body, { ...caller, arrivedAt, isGone });
        return { body: { doorId, ...delivery, standingOpen: doors.standingOpen(doorId) } };
      },
    }),
    operation({
      ...common,
      id: 'endDoorStandOpen',
      method: 'delete',
      summary: 'End that a door stands open',
      description:
        'The lock is sent lock commands until it has shown that it is locked; the relay pulse is not renewed any more. Until the last pulse of a relay is over the answer is accepted, also when it is asked again. A door that does not stand open, or did not yet: 200, with that in `reason`. 503 STORAGE_UNAVAILABLE: the door is closed all the same, and that is stored later.',
      errors: ['NOT_FOUND'],
      async handler({ params: { doorId }, caller }) {
        const outcome = await doors.endStandOpen(doorId, caller);
        return { body: { doorId, ...outcome, standingOpen: doors.standingOpen(doorId) } };
      },
    }),
  ];
}

function rfPin(doors: DoorSlice, path: string): Operation[] {
  const common = { path, tag, access: ADMINISTRATORS, params, result: rfPinResult } as const;
  const errors = ['NOT_FOUND', 'NO_LOCK', 'IN_PROGRESS', 'STANDS_OPEN'] as const;
  return [
    operation({
      ...common,
      id: 'setLockRfPin',
      method: 'put',
      summary: 'Store the PIN that the lock of a door requires for operations by radio',
      description:
        'Kept sealed for this lock alone, and never returned, logged or audited; another lock needs its own. `rfPin` of …/state says whether the lock requires one. IN_PROGRESS, STANDS_OPEN: another one is stored, which the lock needs to be locked.',
      body: rfPinBody,
      errors,
      async handler({ params: { doorId }, body, caller }) {
        await doors.rfPins.set(doorId, body.pin, caller);
        return { body: { doorId, isStored: true } };
      },
    }),
    operation({
      ...common,
      id: 'removeLockRfPin',
      method: 'delete',
      summary: 'Forget the PIN for operations by radio of the lock of a door',
      errors,
      async handler({ params: { doorId }, caller }) {
        await doors.rfPins.remove(doorId, caller);
        return { body: { doorId, isStored: false } };
      },
    }),
  ];
}

function lockCare(doors: DoorSlice, path: string): Operation[] {
  return [
    operation({
      id: 'replaceLock',
      method: 'post',
      path: `${path}/{doorId}/replace-lock`,
      tag,
      summary: 'Put another lock in the place of that of a door',
      description:
        'The door keeps its id, settings and history; `lockId` is a new one, and all that is wanted goes to the new lock. The door that the new lock got when it joined disappears; one of which more is wanted is refused (ALREADY_EXISTS), and one whose lock was unlocked and has not shown yet that it is locked (IN_PROGRESS). A lock that has not joined yet is waited for. The one it has already: nothing changes.',
      access: ADMINISTRATORS,
      params,
      body: replaceLockBody,
      result: door,
      errors: ['NOT_FOUND', 'PRECONDITION_FAILED', 'ALREADY_EXISTS', 'IN_PROGRESS'],
      async handler({ params, body, editor }) {
        const { door, version } = await doors.replaceLock(params.doorId, body, editor);
        return { body: door, etag: String(version) };
      },
    }),
    operation({
      id: 'swapLocks',
      method: 'post',
      path: `${path}/{doorId}/swap-lock`,
      tag,
      summary: 'Exchange the locks of two doors',
      description:
        'Both doors keep their id, settings and history, and each gets the lock of the other one, with a new `lockId`; all that is wanted of each goes to the lock that it has now. The PIN of a lock goes with the lock. Refused while one of them is being opened (IN_PROGRESS) or stands open (STANDS_OPEN): nothing changes then.',
      access: ADMINISTRATORS,
      params,
      body: swapLockBody,
      result: lockSwapResult,
      errors: ['NOT_FOUND', 'NO_LOCK', 'PRECONDITION_FAILED', 'IN_PROGRESS', 'STANDS_OPEN'],
      async handler({ params, body, editor }) {
        const [own, other] = await doors.swapLock(params.doorId, body, editor);
        return { body: { doors: [own.door, other.door] }, etag: String(own.version) };
      },
    }),
    operation({
      id: 'updateLockFirmware',
      method: 'post',
      path: `${path}/{doorId}/firmware`,
      tag,
      summary: 'Give a lock new firmware',
      description:
        'As a job, out of a file in `firmwareDirectory` of the configuration; nothing is ever downloaded, and a file that is no Zigbee OTA file or damaged is refused at once. One lock of a network at a time: the others wait, `queued` with their `position`, also across a restart, until it is their turn or `DELETE /jobs/{id}`; lock, file and battery are looked at again then. The lock fetches the file in its own time, `progress` in percent; what broke off goes on where it was when it is started again. BATTERY_LOW: its battery is too low, or not known. `result` of the finished job: {doorId, mac, file, zigbeeFirmwareVersion}.',
      access: TECHNICIANS,
      params,
      body: firmwareBody,
      ...startsJob,
      errors: ['NOT_FOUND', 'NO_LOCK', 'BATTERY_LOW', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await doors.firmware.start(params.doorId, body, caller),
      }),
    }),
  ];
}
