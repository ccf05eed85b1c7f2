/**
 * One request and answer of each operation that an integrator begins with, by operationId. test/openapi.test.ts holds
 * them against the schemas of the operations.
 */
const ENCODER_ID = 'desk-1';
const DOOR_ID = '0b6364c5-213a-47d4-a26b-a8fa2cf663b8';
const NEXT_DOOR_ID = 'adacbc70-c95c-47da-9203-dff5459bf443';
const DEVICE_ID = '0e9f7f11-d67d-489b-bec6-93ec8cf44ac4';
const GATEWAY_ID = '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a01';
const NETWORK_ID = 'd2f7c1b4-58e0-4c7d-b6a9-1e0f3a5c8d01';
const CALLER_ID = 'a28c453e-a6d6-4131-9b88-23fad7f66006';
const KEY_IDS = ['d3b0c2a4-7f1e-4b6a-9c8d-1e2f3a4b5c6d', '0f3c9a5b-2d17-4c1e-8a57-5a1f7c1e0c52'] as const;
const EARLIER = '2026-03-01T08:00:00.000Z';
const NOW = '2026-03-01T09:30:00.000Z';
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----\n';

const encoder = {
  id: ENCODER_ID,
  name: 'Front desk, left',
  metadata: { room: 'Lobby' },
  ipAddress: '192.168.7.21',
  alarmState: { changedOn: EARLIER, raised: false },
  connectionState: { changedOn: EARLIER, connected: true },
  apps: [{ name: 'writer', version: '1.4.0' }],
  platform: { name: 'encoder-os', version: '7.1' },
  upgradeJobInfo: null,
  versions: [{ name: 'bootloader', version: '2.0' }],
};

const writeRequest = {
  encoderId: ENCODER_ID,
  requestId: 'checkin-4711',
  description: 'Room 214',
  status: 'inProgress',
  acceptedAt: NOW,
  expiresAt: '2026-03-01T09:45:00.000Z',
  position: 0,
  entries: [
    { keyId: KEY_IDS[0], status: 'written' },
    { keyId: KEY_IDS[1], status: 'cardRequested' },
  ],
};

const door = {
  id: DOOR_ID,
  name: 'Room 101',
  groupId: 'floor-1',
  accessPointId: 101,
  applied: {
    appliedBy: CALLER_ID,
    appliedOn: NOW,
    payloads: ['FTQSjwCOAwAAABcAOn0='],
    versions: {
      doorVersion: 3,
      schedule: { id: 'office', version: 2 },
      systemConfigVersion: 1,
      template: { id: 'room', version: 1 },
    },
  },
  bleFirmwareVersion: '2.0.7',
  capabilities: ['online', 'standOpen', 'schedule', 'accessInternal'],
  configVersion: 3,
  connectionState: {
    evaluatedStates: { lastReceivedEvent: true, lqiOK: true, recentlySeen: true, rssiOK: true },
    lastContact: NOW,
    lastEvent: NOW,
    lastSeen: 1_772_357_400_000,
    lqi: 220,
    rssi: -60,
  },
  connectionType: 'zigbee',
  createdAt: EARLIER,
  createdBy: CALLER_ID,
  updatedAt: NOW,
  updatedBy: CALLER_ID,
  dueBatteryUnderLoad: 5_720,
  dueBatteryWithoutLoad: 6_050,
  gatewayId: GATEWAY_ID,
  interval: { start: 360, end: 1_380 },
  lccVersion: '1.9.3',
  lcuFirmwareVersion: '4.2.0',
  lockId: '2c231ee4-5b48-4c86-8f13-f950219b8f26',
  mac: '00158d0001000065',
  networkId: NETWORK_ID,
  onlineEnabled: true,
  pmsId: '101',
  relaySetup: null,
  samVersion: '3.1.1',
  scheduleId: 'office',
  standOpenEnabled: false,
  templateId: 'room',
  type: 'room',
  version: 5,
  zigbeeFirmwareVersion: '1.2.3',
};

const pins = (inUse: readonly string[]) =>
  Object.fromEntries(
    [
      ...Array.from({ length: 4 }, (_, pin) => `input${pin}`),
      ...Array.from({ length: 8 }, (_, pin) => `output${pin}`),
    ].map((pin) => [pin, inUse.includes(pin)]),
  );

const device = {
  deviceId: DEVICE_ID,
  name: 'Staff entrance',
  description: null,
  doorId: NEXT_DOOR_ID,
  groupId: 'lobby',
  group: 'Lobby',
  hwId: 'GIO-00004217',
  type: 'GIO-48',
  relayIndex: 0,
  unlockDurationMilliseconds: 3_000,
  useInputPinMemory: true,
  ioPins: pins(['input0', 'output0']),
  reportedSettingsVersion: 2,
  settingsVersion: 2,
  apps: [{ name: 'io', version: '1.0.0' }],
  platform: { version: '1.0.0' },
  connectionState: { changedOn: EARLIER, connected: true },
  upgradeJobInfo: null,
};

const gateway = {
  deviceId: GATEWAY_ID,
  name: 'First floor',
  description: 'Above the ceiling of the corridor',
  groupId: 'floor-1',
  group: 'First floor',
  hwId: '00124b0014d9a001',
  type: 'zstack',
  networkId: NETWORK_ID,
  allowedChannels: [15, 20, 25],
  zigbeeChannel: 15,
  permitJoin: false,
  apps: [{ name: 'ZStack3x0', version: '2.7.1' }],
  platform: { version: '20230507' },
  connectionState: { changedOn: EARLIER, connected: true },
  upgradeJobInfo: null,
};

const runningJob = {
  id: '99cd938b-6244-48eb-8140-2eef081edeff',
  kind: 'rs485-scan',
  object: 'rs485/bus/bus-1',
  status: 'running',
  position: null,
  progress: { done: 12, total: 32, percent: 37 },
  startedAt: NOW,
  startedBy: CALLER_ID,
  cancelRequestedAt: null,
  finishedAt: null,
  error: null,
  result: null,
};

export interface Example {
  body?: object;
  result?: object;
}

export const EXAMPLES: Readonly<Record<string, Example>> = {
  addEncoder: {
    body: {
      name: encoder.name,
      metadata: encoder.metadata,
      deviceCert: CERTIFICATE,
      publicKey: '-----BEGIN PUBLIC KEY-----\nMFkw…\n-----END PUBLIC KEY-----\n',
      signature: 'MEUCIQDm2sF4Zz8x',
    },
    result: {
      ...encoder,
      connectionState: { changedOn: NOW, connected: false },
      cert: CERTIFICATE,
      configurations: { vendor: 'eyJrZWVwQWxpdmUiOjIwfQ==' },
      credentials: 'eyJhbGciOiJFUzI1NiJ9',
      endpoint: 'mqtts://gatehouse.hotel.example:8883',
      secrets: { 'iot-credentials': 'ZXlKaGJHY2lPaUpGUTBSSUxVVlQ=' },
      systemId: [13, 140, 28, 30, 122, 62, 79, 11, 156, 87, 58, 82, 241, 240, 161, 178],
      version: 1,
    },
  },
  updateEncoder: { body: { name: encoder.name, metadata: encoder.metadata }, result: encoder },
  getEncoder: { result: encoder },
  listEncoders: { result: { items: [{ ...encoder, openRequests: 1 }], next: null } },
  sendWriteRequest: {
    body: {
      description: 'Room 214',
      data: KEY_IDS.map((keyId) => ({ keyId, blocks: ['6a1f09c2', '00ff17a4'] })),
    },
    result: {
      ...writeRequest,
      status: 'queued',
      entries: KEY_IDS.map((keyId) => ({ keyId, status: 'queued' })),
    },
  },
  getWriteRequest: { result: writeRequest },
  cancelWriteRequest: {
    result: {
      ...writeRequest,
      status: 'cancelled',
      position: null,
      entries: KEY_IDS.map((keyId) => ({ keyId, status: 'cancelled' })),
    },
  },
  updateDoor: {
    body: {
      version: 4,
      name: 'Room 101',
      groupId: 'floor-1',
      scheduleId: 'office',
      options: {
        accessInternal: { doors: [{ id: NEXT_DOOR_ID, type: 'room' }], interval: door.interval },
        outputs: [{ doorId: DOOR_ID, access: { doors: [{ id: NEXT_DOOR_ID, type: 'room' }] } }],
      },
    },
    result: door,
  },
  createDoor: { body: { name: 'Room 101', accessPointId: 101, mac: door.mac }, result: door },
  getDoor: { result: door },
  listDoorsInBrief: {
    result: {
      items: [
        {
          id: DOOR_ID,
          name: door.name,
          accessPointId: door.accessPointId,
          groupId: door.groupId,
          gatewayId: door.gatewayId,
          mac: door.mac,
          pmsId: door.pmsId,
          lqi: door.connectionState.lqi,
          lastSeen: door.connectionState.lastSeen,
          presence: 'connected',
          battery: 'ok',
          batteryPercent: 80,
          pending: false,
          applied: true,
        },
      ],
      next: null,
    },
  },
  listDoors: {
    result: {
      items: [
        {
          ...door,
          state: {
            presence: 'disconnected',
            since: '2026-03-01T08:00:00.000Z',
            reason: {
              code: 'BATTERY_LOW',
              message:
                'The lock was last heard at 2026-03-01T07:58:00.000Z, its battery low (7 %): change the battery.',
            },
            battery: 'low',
            batteryPercent: 12,
            pending: false,
            applied: true,
          },
        },
      ],
      next: '214',
    },
  },
  createToken: { body: { label: 'Display of the lobby', roles: ['service-tool'], expiresInDays: 90 } },
  createLoginCode: { body: { label: 'Installer', roles: ['service-tool'] } },
  putGroup: { body: { name: 'First floor' }, result: { id: 'floor-1', name: 'First floor' } },
  putSchedule: { body: { intervals: [{ days: ['mon', 'fri'], start: 480, end: 1_110 }] } },
  putTemplate: { body: { type: 'suite', standOpenAllowed: false } },
  unlockDoor: { result: { doorId: DOOR_ID, via: 'zigbee', outcome: 'confirmed', reason: null } },
  lockDoor: { result: { doorId: DOOR_ID, via: 'zigbee', outcome: 'confirmed', reason: null } },
  standDoorOpen: { body: { seconds: 1_800 } },
  setLockRfPin: { body: { pin: '4711' } },
  swapLocks: { body: { doorId: NEXT_DOOR_ID } },
  replaceLock: { body: { mac: '00158d00010000ff' } },
  updateRs485Device: {
    body: {
      name: device.name,
      doorId: device.doorId,
      relayIndex: 0,
      unlockDurationMilliseconds: 3_000,
      ioPins: { input0: true, output0: true },
    },
    result: device,
  },
  getRs485Device: { result: device },
  pulseRs485Device: { result: { relay: 0, milliseconds: 3_000, timedBy: 'device', outcome: 'confirmed' } },
  scanRs485Bus: { body: { bus: 'bus-1', from: 1, to: 32 }, result: runningJob },
  getJob: { result: runningJob },
  updateZigbeeGateway: {
    body: { name: gateway.name, description: gateway.description, allowedChannels: [15, 20, 25] },
    result: gateway,
  },
  getZigbeeGateway: { result: gateway },
  permitJoin: {
    body: { seconds: 120, allowed: ['00158d0001a2b3c4'] },
    result: {
      deviceId: GATEWAY_ID,
      joinWindow: {
        openedAt: NOW,
        until: '2026-03-01T09:32:00.000Z',
        openedBy: CALLER_ID,
        allowed: ['00158d0001a2b3c4'],
      },
    },
  },
  updateNetwork: {
    body: { description: 'Guest rooms', cert: CERTIFICATE },
    result: { id: NETWORK_ID, description: 'Guest rooms', cert: CERTIFICATE },
  },
  signIn: { body: { code: '4V03-MB34' } },
};
