/** The RS-485 device operations of the interface: 4.5 and its reads. */
import { z } from '@hono/zod-openapi';
import { eventStream, type Operation, operation } from '../../platform/http/operation.ts';
import { WIRING_READERS } from '../../platform/principal.ts';
import { startsJob } from '../../services/jobs/schema.ts';
import {
  busList,
  busReference,
  communicationBody,
  firmwareBody,
  pairBody,
  pulseResult,
  readerBody,
  readerResult,
  replaceBody,
  scanBody,
  traceEvent,
  traceQuery,
  watchdogTestBody,
} from './bus-schema.ts';
import { READDRESSERS } from './communication.ts';
import { UPDATERS } from './firmware.ts';
import { PAIRERS } from './pairing.ts';
import { SHOWERS } from './readers.ts';
import type { Rs485 } from './rs485.ts';
import { SCANNERS } from './scan.ts';
import { deviceId, listQuery, rs485Device, rs485DeviceState, rs485Page, updateBody } from './schema.ts';
import { WATCHDOG_TESTERS } from './watchdog.ts';

const params = z.object({ deviceId });
const tag = 'RS-485 devices';
const reading = { method: 'get', tag, access: WIRING_READERS } as const;
const path = '/network/rs485/{deviceId}';
export function rs485Operations(rs485: Rs485): Operation[] {
  return [
    ...deviceOperations(rs485),
    retirement(rs485),
    ...busOperations(rs485),
    ...fieldOperations(rs485),
    watchdogOperation(rs485),
    ...osdpOperations(rs485),
    traceOperation(rs485),
  ];
}

function deviceOperations(rs485: Rs485): Operation[] {
  return [
    operation({
      id: 'updateRs485Device',
      method: 'put',
      path,
      tag,
      summary: 'Update an RS-485 device',
      description:
        'A field that is absent stays as it is; `ioPins` merges pin by pin. What travels to the device (`ioPins`, `relayIndex`, `unlockDurationMilliseconds`, `useInputPinMemory`) raises `settingsVersion`, and is in force once `reportedSettingsVersion` is the same; `…/state` says what keeps it. What a device that is known cannot carry (a pin or a relay that it does not have, a time that is too long, pin memory) is refused (NOT_SUPPORTED), nothing of the body is stored then; of one that was not heard of since the gateway started anything is stored.',
      access: ['front-desk-admin', 'service-tool'],
      params,
      body: updateBody,
      result: rs485Device,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'PRECONDITION_FAILED', 'RELAY_IN_USE', 'NOT_SUPPORTED'],
      async handler({ params, body, editor }) {
        const { device, revision } = await rs485.update(params.deviceId, body, editor);
        return { body: device, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'listRs485Devices',
      path: '/network/rs485',
      summary: 'List RS-485 devices',
      query: listQuery,
      result: rs485Page,
      handler: ({ query }) => ({ body: rs485.list(query) }),
    }),
    operation({
      ...reading,
      id: 'getRs485Device',
      path,
      summary: 'Read an RS-485 device',
      params,
      result: rs485Device,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { device, revision } = rs485.get(params.deviceId);
        return { body: device, etag: String(revision) };
      },
    }),
    operation({
      ...reading,
      id: 'getRs485DeviceState',
      path: `${path}/state`,
      summary: 'Read what is known of an RS-485 device beyond its resource',
      params,
      result: rs485DeviceState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: rs485.state(params.deviceId) }),
    }),
  ];
}

function retirement(rs485: Rs485): Operation {
  return operation({
    id: 'retireRs485Device',
    method: 'delete',
    path,
    tag,
    summary: 'Remove an RS-485 device for good',
    description:
      'Answered with what it was, which the audit keeps. IN_USE: it has a `doorId`, or it answers, and would be found again at once. One that answers again later is found as a device that is new.',
    access: ['front-desk-admin', 'service-tool'],
    params,
    result: rs485Device,
    errors: ['NOT_FOUND', 'PRECONDITION_FAILED', 'IN_USE'],
    handler: async ({ params, editor }) => ({ body: await rs485.retire(params.deviceId, editor) }),
  });
}

function busOperations(rs485: Rs485): Operation[] {
  return [
    operation({
      id: 'listRs485Buses',
      method: 'get',
      path: '/network/rs485/buses',
      tag,
      summary: 'Read how the buses do',
      access: ['service-tool', 'front-desk-admin', 'monitor'],
      result: busList,
      handler: () => ({ body: { items: rs485.buses.overview() } }),
    }),
    operation({
      id: 'scanRs485Bus',
      method: 'post',
      path: '/network/rs485/scan',
      tag,
      summary: 'Look for devices on a bus',
      description:
        'Asks every address of a range who is there, as a job; polls and pulses go on in between. Devices that say who they are become rows. `result` of the finished job: `addresses` [{address, answered, identity, turnaroundMs {min, median, max}, counters, deviceId, isNew}] of those that said anything or should have, and `findings` [{severity, subject, text, code, parameters}], what to mend. With `detect`, each other pair of baud rate and parity is tried as well, one question at a time, while everything else goes on with those of the configuration: `settings` [{baudRate, parity, stopBits, configured, answered, devices}] and `advice`, what to put into the configuration. A serial device server keeps its own: VALIDATION_FAILED.',
      access: SCANNERS,
      body: scanBody,
      ...startsJob,
      errors: ['IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ body, caller }) => ({ body: await rs485.scan(body, caller) }),
    }),
    operation({
      id: 'pairOsdpDevice',
      method: 'post',
      path: '/network/rs485/buses/{bus}/pair',
      tag,
      summary: 'Give an OSDP device its key',
      description:
        'Draws a key for the device at this address and gives it to it, as a job; the device must be in its install mode, or have no key yet. While the window is open anyone who listens on that bus can learn the key: do it with a person at the device. `result` of the finished job: `{bus, address, hwId, deviceId}`. A job that failed before the key was sent changes nothing. One that ended later (`OUTCOME_UNKNOWN`, `INTERRUPTED`) leaves both the new key and the one before it to be tried: the one that the device proves is its key, without another window.',
      access: PAIRERS,
      params: z.object({ bus: busReference }),
      body: pairBody,
      ...startsJob,
      errors: ['NOT_FOUND', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({ body: await rs485.pair(params.bus, body, caller) }),
    }),
  ];
}

/** Anyone who reads a bus reads cards, and keypads too where a device is spoken to in clear text. */
function traceOperation(rs485: Rs485): Operation {
  return eventStream({
    id: 'traceRs485Bus',
    path: '/local/rs485/buses/{bus}/trace',
    tag: 'Local',
    summary: 'Follow what goes over a bus',
    description:
      'Server-sent events, named as `event` of their data: `begin`, `packets`, `interrupted` (the link is down; what passes until it is up again is not shown), `heartbeat` (every 15 s) and, last, `end`. Bytes are as on the wire, but for keys: an osdp_KEYSET is blanked from its data on. With `decrypt` (OSDP) what is encrypted in a secure channel is told in clear, `decrypted`, but for keys, cards and what is typed; the audit says so. A reader that is slow loses the oldest and is told how many. One at a time on each bus.',
    access: 'local',
    params: z.object({ bus: busReference }),
    query: traceQuery,
    result: traceEvent,
    errors: ['NOT_FOUND', 'IN_PROGRESS', 'DEVICE_OFFLINE'],
    open: ({ params, query, caller, closing }) => rs485.trace(params.bus, query, { ...caller, closing }),
  });
}

function watchdogOperation(rs485: Rs485): Operation {
  return operation({
    id: 'testRs485Watchdog',
    method: 'post',
    path: `${path}/watchdog-test`,
    tag,
    summary: 'Prove that the watchdog of an RS-485 device opens its relay',
    description:
      'For a device whose relay the gateway times (`watchdog` in `…/state`): closes the relay in force, asks the device nothing until its watchdog must have run out, and reads whether the relay is open. Disconnect what the relay opens first, and send `confirm`. As a job; meanwhile the device is shown as not connected. On a DCON bus no host watchdog is fed meanwhile, so that relays of other modules open too. Until such a test has succeeded, and after each change of the profile, of `relayIndex` or of the device, the relay is not fired (WATCHDOG_NOT_PROVEN). `result` of the finished job: {deviceId, hwId, relay, waitedMilliseconds}.',
    access: WATCHDOG_TESTERS,
    params,
    body: watchdogTestBody,
    ...startsJob,
    errors: [
      'NOT_FOUND',
      'NO_RELAY',
      'CONFIRMATION_NEEDED',
      'IN_PROGRESS',
      'WATCHDOG_NOT_PROVEN',
      'QUEUE_FULL',
      'DEVICE_OFFLINE',
    ],
    handler: async ({ params, body, caller }) => ({
      body: await rs485.testWatchdog(params.deviceId, body, caller),
    }),
  });
}

function fieldOperations(rs485: Rs485): Operation[] {
  return [
    operation({
      id: 'pulseRs485Device',
      method: 'post',
      path: `${path}/pulse`,
      tag,
      summary: 'Fire the relay of an RS-485 device',
      description:
        'Closes the relay that its settings in force name, for unlockDurationMilliseconds (5 s where neither they nor the device name a time). Each request fires once at most, within 5 s or not at all, and is never sent again by itself. 503 DEVICE_OFFLINE: nothing was fired.',
      access: ['service-tool'],
      params,
      result: pulseResult,
      errors: ['NOT_FOUND', 'NO_RELAY', 'WATCHDOG_NOT_PROVEN', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, caller, arrivedAt, isGone, hungUp }) => ({
        body: await rs485.pulse(params.deviceId, { ...caller, arrivedAt, isGone, hungUp }),
      }),
    }),
    operation({
      id: 'replaceRs485Device',
      method: 'post',
      path: `${path}/replace`,
      tag,
      summary: 'Put another device in the place of one',
      description:
        'The record keeps its id, name, door, settings and history, and its settings go to the new device. The row that the new device was found with disappears; one that somebody has wanted something of is refused (ALREADY_EXISTS). A hwId that does not answer on the bus now has to be confirmed.',
      access: ['service-tool'],
      params,
      body: replaceBody,
      result: rs485Device,
      errors: ['NOT_FOUND', 'PRECONDITION_FAILED', 'ALREADY_EXISTS', 'CONFIRMATION_NEEDED'],
      async handler({ params, body, editor }) {
        const { device, revision } = await rs485.replace(params.deviceId, body, editor);
        return { body: device, etag: String(revision) };
      },
    }),
  ];
}

/** What is done with OSDP devices alone. */
function osdpOperations(rs485: Rs485): Operation[] {
  return [
    operation({
      id: 'showOnRs485Reader',
      method: 'post',
      path: `${path}/reader`,
      tag,
      summary: 'Show a text, a light or beeps at an OSDP reader',
      description:
        'At once and for a time, after which the reader does again what it did before; `feedback` of the link does the same after each pulse. In the order text, led, buzzer. 409 READER_REFUSED: `details` name the part that the device cannot do, as its capabilities (osdp_PDCAP) or its answer say, and what comes after it was not sent. The audit has it (`rs485.reader`), with the text.',
      access: SHOWERS,
      params,
      body: readerBody,
      result: readerResult,
      errors: ['NOT_FOUND', 'READER_REFUSED', 'OUTCOME_UNKNOWN', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await rs485.showOnReader(params.deviceId, body, caller),
      }),
    }),
    operation({
      id: 'updateRs485Firmware',
      method: 'post',
      path: `${path}/firmware`,
      tag,
      summary: 'Give an OSDP device new firmware',
      description:
        'As a job, out of a file in `firmwareDirectory` of the configuration with a manifest beside it (`<file>.json`) that says for which devices it is; nothing is ever downloaded. One device of a bus at a time: others wait in the queue of the bus, and `position` of the job is its place. Polls and commands go on in between; `progress` counts bytes, and `upgradeJobInfo` of the device tells what it is given. A device, host or gateway that is lost goes on from the last byte it confirmed, and so does a job that failed when it is started again; one that was cancelled begins again. `result` of the finished job: {deviceId, hwId, file, version, platformVersion}, the last as the device tells it now.',
      access: UPDATERS,
      params,
      body: firmwareBody,
      ...startsJob,
      errors: ['NOT_FOUND', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, caller }) => ({
        body: await rs485.firmware.start(params.deviceId, body, caller),
      }),
    }),
    operation({
      id: 'readdressRs485Device',
      method: 'post',
      path: `${path}/communication`,
      tag,
      summary: 'Give an OSDP device another address or baud rate',
      description:
        'As a job. The row keeps its id, hwId and settings, and the device its key. An address where something answers, or that another row has, is refused. `result` of the finished job: {deviceId, hwId, bus, from, address, baudRate, outcome}, `outcome` `moved`; `stayed`: it has not taken it; `left`: it has taken another baud rate and cannot be reached until the bus has that too; `lost`: it answers at neither address, and both are kept in mind. CONFIRMATION_NEEDED: it is spoken to in clear text, or would leave the bus.',
      access: READDRESSERS,
      params,
      body: communicationBody,
      ...startsJob,
      errors: [
        'NOT_FOUND',
        'ALREADY_EXISTS',
        'CONFIRMATION_NEEDED',
        'IN_PROGRESS',
        'QUEUE_FULL',
        'DEVICE_OFFLINE',
      ],
      handler: async ({ params, body, caller }) => ({
        body: await rs485.readdress(params.deviceId, body, caller),
      }),
    }),
  ];
}
