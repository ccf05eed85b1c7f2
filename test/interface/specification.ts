/**
 * The tables of the interface specification as data, written down from its text: nothing here is taken from the
 * product, so that a field, role or status it lost is missed here.
 *
 * A type ends in `?` where the gateway may not know a value: the field is there all the same, and null.
 */

/** A type of section 2, an Array of one, or an object with exactly these fields. `texts`: any keys, values are strings. */
export type Shape = string | readonly [Shape] | Fields | { readonly orNull: Fields };
export interface Fields {
  readonly [field: string]: Shape;
}

const nameVersion = { name: 'string', version: 'string' };
const connectionState = { changedOn: 'date-time', connected: 'boolean' };
const deviceUpgrade = { app: [nameVersion], id: 'string', platform: { version: 'string' } } as const;
const idVersion = { id: 'string', version: 'integer' };

/** 2.2 */
const encoder: Fields = {
  id: 'string',
  name: 'string?',
  metadata: 'texts?',
  ipAddress: 'string?',
  alarmState: { changedOn: 'date-time', raised: 'boolean' },
  connectionState,
  apps: [nameVersion],
  platform: { orNull: nameVersion },
  upgradeJobInfo: {
    orNull: { apps: [nameVersion], id: 'string', platform: nameVersion, versions: [nameVersion] },
  },
  versions: [nameVersion],
};

/** 2.2, returned additionally by the registration; `vendor` is the default name of <vendor_key>. */
const registeredEncoder: Fields = {
  ...encoder,
  cert: 'string',
  configurations: { vendor: 'base64' },
  credentials: 'base64',
  endpoint: 'string',
  secrets: { 'iot-credentials': 'base64' },
  systemId: ['integer'],
  version: 'integer',
};

/** 2.3 */
const door: Fields = {
  id: 'uuid',
  name: 'string?',
  groupId: 'string?',
  accessPointId: 'integer',
  applied: {
    orNull: {
      appliedBy: 'uuid',
      appliedOn: 'date-time',
      payloads: ['string'],
      versions: {
        doorVersion: 'integer',
        schedule: { orNull: idVersion },
        systemConfigVersion: 'integer',
        template: { orNull: idVersion },
      },
    },
  },
  bleFirmwareVersion: 'string?',
  capabilities: ['string'],
  configVersion: 'integer',
  connectionState: {
    evaluatedStates: {
      lastReceivedEvent: 'boolean',
      lqiOK: 'boolean',
      recentlySeen: 'boolean',
      rssiOK: 'boolean',
    },
    lastContact: 'date-time?',
    lastEvent: 'date-time?',
    lastSeen: 'integer?',
    lqi: 'integer?',
    rssi: 'integer?',
  },
  connectionType: 'string?',
  createdAt: 'date-time',
  createdBy: 'uuid',
  updatedAt: 'date-time',
  updatedBy: 'uuid',
  dueBatteryUnderLoad: 'integer?',
  dueBatteryWithoutLoad: 'integer?',
  gatewayId: 'string?',
  interval: { orNull: { start: 'integer', end: 'integer' } },
  lccVersion: 'string?',
  lcuFirmwareVersion: 'string?',
  lockId: 'uuid?',
  mac: 'string?',
  networkId: 'string?',
  onlineEnabled: 'boolean',
  pmsId: 'string?',
  relaySetup: 'string?',
  samVersion: 'string?',
  scheduleId: 'string?',
  standOpenEnabled: 'boolean',
  templateId: 'string?',
  type: 'string?',
  version: 'integer',
  zigbeeFirmwareVersion: 'string?',
};

const PINS = [
  ...['input0', 'input1', 'input2', 'input3', 'output0', 'output1', 'output2', 'output3'],
  ...['output4', 'output5', 'output6', 'output7'],
];
const ioPins = Object.fromEntries(PINS.map((pin) => [pin, 'boolean']));

/** 2.4 */
const rs485: Fields = {
  deviceId: 'uuid',
  name: 'string?',
  description: 'string?',
  doorId: 'string?',
  groupId: 'string?',
  group: 'string?',
  hwId: 'string',
  type: 'string?',
  relayIndex: 'integer?',
  unlockDurationMilliseconds: 'integer?',
  useInputPinMemory: 'boolean',
  ioPins,
  reportedSettingsVersion: 'integer',
  settingsVersion: 'integer',
  apps: [nameVersion],
  platform: { orNull: { version: 'string' } },
  connectionState,
  upgradeJobInfo: { orNull: deviceUpgrade },
};

/** 2.5 */
const zgate: Fields = {
  deviceId: 'uuid',
  name: 'string?',
  description: 'string?',
  groupId: 'string?',
  group: 'string?',
  hwId: 'string?',
  type: 'string?',
  networkId: 'uuid',
  allowedChannels: ['integer'],
  zigbeeChannel: 'integer?',
  permitJoin: 'boolean',
  apps: [nameVersion],
  platform: { orNull: { version: 'string' } },
  connectionState,
  upgradeJobInfo: { orNull: deviceUpgrade },
};

/** 2.6; the body of the answer is not shown, docs/interface.md decides it. */
const network: Fields = { id: 'uuid', description: 'string?', cert: 'string?' };

/** 4.3 does not show the body of its 202; docs/interface.md decides it. */
const writeRequest: Fields = {
  encoderId: 'string',
  requestId: 'string',
  description: 'string?',
  status: 'string',
  acceptedAt: 'date-time',
  expiresAt: 'date-time',
  position: 'integer?',
  entries: [{ keyId: 'uuid', status: 'string' }],
};

export const ROLES = ['service-tool', 'front-desk-admin', 'front-desk', 'pms'] as const;
export type RoleName = (typeof ROLES)[number];

export interface SpecifiedOperation {
  /** Of section 4. */
  clause: string;
  method: 'PUT' | 'POST';
  /** `access` is the default <product>. */
  path: string;
  roles: readonly RoleName[];
  success: 200 | 202;
  response: Fields;
}

/** Section 4, and section 5 for the roles. */
export const OPERATIONS: readonly SpecifiedOperation[] = [
  {
    clause: '4.1',
    method: 'PUT',
    path: '/encoder/{encoderId}',
    success: 200,
    roles: ['service-tool'],
    response: registeredEncoder,
  },
  {
    clause: '4.2',
    method: 'POST',
    path: '/encoder/{encoderId}',
    success: 200,
    roles: ['service-tool', 'front-desk-admin'],
    response: encoder,
  },
  {
    clause: '4.3',
    method: 'PUT',
    path: '/encoder/{encoderId}/write-request/{requestId}',
    success: 202,
    roles: ['front-desk', 'front-desk-admin', 'pms'],
    response: writeRequest,
  },
  {
    clause: '4.4',
    method: 'PUT',
    path: '/access/doors/{doorId}',
    success: 200,
    roles: ['front-desk-admin'],
    response: door,
  },
  {
    clause: '4.5',
    method: 'PUT',
    path: '/network/rs485/{deviceId}',
    success: 200,
    roles: ['front-desk-admin', 'service-tool'],
    response: rs485,
  },
  {
    clause: '4.6',
    method: 'PUT',
    path: '/network/zgate/{deviceId}',
    success: 200,
    roles: ['front-desk-admin', 'service-tool'],
    response: zgate,
  },
  {
    clause: '4.7',
    method: 'PUT',
    path: '/network/{netId}',
    success: 200,
    roles: ['front-desk-admin'],
    response: network,
  },
];

/** Section 7: what each operation lists, besides 401 and 403, which section 5 gives to all of them. */
export const LISTED: Readonly<Record<string, readonly number[]>> = {
  '4.3': [422],
  '4.4': [400, 401, 404, 409],
  '4.5': [400, 401, 404, 409],
  '4.6': [400, 401, 404],
  '4.7': [400, 401, 403, 404],
};

const FORMS: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  uuid: (value) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(value)),
  base64: (value) => /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(String(value)),
  // ISO 8601, in the form of RFC 3339.
  'date-time': (value) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(String(value)),
  texts: (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'string'),
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Where `value` differs from `shape`: fields that are missing, of another type, or not in the specification. */
export function differences(shape: Shape, value: unknown, path = ''): string[] {
  if (typeof shape === 'string') {
    if (shape.endsWith('?') && value === null) return [];
    const form = FORMS[shape.replace('?', '')];
    return form?.(value) ? [] : [`${path} is ${JSON.stringify(value)}, not ${shape}`];
  }
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return [`${path} is no array`];
    return value.flatMap((item, index) => differences(shape[0], item, `${path}/${index}`));
  }
  const fields = shape as Fields & { orNull?: Fields };
  if (fields.orNull !== undefined) return value === null ? [] : differences(fields.orNull, value, path);
  if (!isObject(value)) return [`${path} is no object`];
  const names = new Set([...Object.keys(fields), ...Object.keys(value)]);
  return [...names].flatMap((name) => {
    const here = `${path}/${name}`;
    const inner = fields[name];
    if (inner === undefined) return [`${here} is not in the specification`];
    return name in value ? differences(inner, value[name], here) : [`${here} is missing`];
  });
}
