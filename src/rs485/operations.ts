/** The RS-485 device operations of the interface: 4.5 and its reads. */
import { z } from '@hono/zod-openapi';
import { type Operation, operation } from '../http/operation.ts';
import type { Role } from '../principal.ts';
import type { Rs485 } from './rs485.ts';
import { deviceId, listQuery, rs485Device, rs485DeviceState, rs485Page, updateBody } from './schema.ts';

const params = z.object({ deviceId });
const tag = 'RS-485 devices';
const path = '/network/rs485/{deviceId}';
/** All but the property management system, which has no business with wiring. */
const READERS: readonly [Role, ...Role[]] = ['service-tool', 'front-desk-admin', 'front-desk'];

export function rs485Operations(rs485: Rs485): Operation[] {
  return [
    operation({
      id: 'updateRs485Device',
      method: 'put',
      path,
      tag,
      summary: 'Update an RS-485 device',
      description:
        'A field that is absent stays as it is; `ioPins` merges pin by pin. What travels to the device (`ioPins`, `relayIndex`, `unlockDurationMilliseconds`, `useInputPinMemory`) raises `settingsVersion`, and is in force once `reportedSettingsVersion` is the same; `…/state` says what keeps it.',
      access: ['front-desk-admin', 'service-tool'],
      params,
      body: updateBody,
      status: 200,
      result: rs485Device,
      errors: ['NOT_FOUND', 'ID_MISMATCH', 'PRECONDITION_FAILED', 'RELAY_IN_USE'],
      async handler({ params, body, principal, correlationId, ifMatch }) {
        const caller = { principal, correlationId, ifMatch };
        const { device, revision } = await rs485.update(params.deviceId, body, caller);
        return { body: device, etag: String(revision) };
      },
    }),
    operation({
      id: 'listRs485Devices',
      method: 'get',
      path: '/network/rs485',
      tag,
      summary: 'List RS-485 devices',
      access: READERS,
      query: listQuery,
      status: 200,
      result: rs485Page,
      errors: [],
      handler: ({ query }) => ({ body: rs485.list(query) }),
    }),
    operation({
      id: 'getRs485Device',
      method: 'get',
      path,
      tag,
      summary: 'Read an RS-485 device',
      access: READERS,
      params,
      status: 200,
      result: rs485Device,
      errors: ['NOT_FOUND'],
      handler({ params }) {
        const { device, revision } = rs485.get(params.deviceId);
        return { body: device, etag: String(revision) };
      },
    }),
    operation({
      id: 'getRs485DeviceState',
      method: 'get',
      path: `${path}/state`,
      tag,
      summary: 'Read what is known of an RS-485 device beyond its resource',
      access: READERS,
      params,
      status: 200,
      result: rs485DeviceState,
      errors: ['NOT_FOUND'],
      handler: ({ params }) => ({ body: rs485.state(params.deviceId) }),
    }),
  ];
}
