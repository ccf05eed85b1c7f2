/** What is done with OSDP devices alone. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../../platform/http/operation.ts';
import { jobPath } from '../../services/jobs/job-order.ts';
import { READDRESSERS } from './communication.ts';
import { UPDATERS } from './firmware.ts';
import { communicationBody, firmwareBody, readerBody, readerResult } from './osdp-schema.ts';
import { SHOWERS } from './readers.ts';
import type { Rs485 } from './rs485.ts';
import { deviceId } from './schema.ts';

const params = z.object({ deviceId });
const tag = 'RS-485 devices';
const path = '/network/rs485/{deviceId}';

/** `job`: the schema of a job. */
export function osdpOperations(rs485: Rs485, job: z.ZodType): Operation[] {
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
      handler: async ({ params, body, principal, correlationId }) => ({
        body: await rs485.showOnReader(params.deviceId, body, { principal, correlationId }),
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
      status: 202,
      result: job,
      location: jobPath,
      errors: ['NOT_FOUND', 'IN_PROGRESS', 'QUEUE_FULL', 'DEVICE_OFFLINE'],
      handler: async ({ params, body, principal, correlationId }) => ({
        body: await rs485.firmware.start(params.deviceId, body, { principal, correlationId }),
      }),
    }),
    operation({
      id: 'readdressRs485Device',
      method: 'post',
      path: `${path}/communication`,
      tag,
      summary: 'Give an OSDP device another address or baud rate',
      description:
        'As a job. The row keeps its id, hwId and settings, and the device its key. An address where something answers, or that another row has, is refused. `result` of the finished job: {deviceId, hwId, bus, from, address, baudRate, outcome}, `outcome` `moved`; `stayed`: it answers as before; `left`: it has taken another baud rate and cannot be reached until the bus has that too; `lost`: it answers at neither address, and both are kept in mind. CONFIRMATION_NEEDED: it is spoken to in clear text, or would leave the bus.',
      access: READDRESSERS,
      params,
      body: communicationBody,
      status: 202,
      result: job,
      location: jobPath,
      errors: [
        'NOT_FOUND',
        'ALREADY_EXISTS',
        'CONFIRMATION_NEEDED',
        'IN_PROGRESS',
        'QUEUE_FULL',
        'DEVICE_OFFLINE',
      ],
      handler: async ({ params, body, principal, correlationId }) => ({
        body: await rs485.readdress(params.deviceId, body, { principal, correlationId }),
      }),
    }),
  ];
}
