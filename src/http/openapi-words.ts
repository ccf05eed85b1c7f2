/** What the OpenAPI document says of tags, headers and of parameters that many operations share. */

/** In the order in which a reader wants them. */
export const TAGS: Readonly<Record<string, string>> = {
  Encoders: 'Card encoders: registration, what they are, their credentials',
  'Write requests': 'Keys to be written on cards at an encoder, and what became of each',
  Doors: 'Doors and their locks: configuration, unlocking, replacing a lock',
  'RS-485 devices': 'Relay boards and readers on RS-485 buses',
  'Zigbee gateways': 'Coordinators of Zigbee networks: channels, joining, the map',
  Networks: 'Networks that group Zigbee gateways',
  Catalogue: 'Groups, schedules and templates, as gatehouse import brought them',
  Jobs: 'Long work with progress: scans, firmware, channel moves',
  Events: 'What happens, as it happens',
  Audit: 'Who did what',
  Session: 'Signing in with a code; who the caller is',
  Tokens: 'Admin socket only: tokens and login codes',
  Site: 'Admin socket only: the import of site.yaml',
  Local: 'Admin socket only: for the command line',
  Health: 'For probes, Prometheus and generators of clients',
};

/** For parameters that say nothing themselves. */
export const PARAMETERS: Readonly<Record<string, string>> = {
  encoderId: 'The encoder: the common name of its factory certificate',
  doorId: 'UUID of the door',
  deviceId: 'deviceId of the device or gateway; any text that is none of one is 404',
  netId: 'UUID of the network',
  bus: 'Id of the bus: that of its link in the configuration',
  id: 'Id of the job, as the answer 202 has it',
  limit: 'Entries on a page',
  cursor: '`next` of the page before',
  connected: 'Only those that are connected, or are not',
  status: 'Only those in this state',
  kind: 'Only jobs of this kind',
  object: 'Only jobs on this object, such as rs485/bus/bus-1',
  outcome: 'Only entries with this outcome',
  groupId: 'Only those of this group',
  networkId: 'Only those of this network',
  gatewayId: 'Only doors that are reached through this Zigbee gateway',
  pmsId: 'Only the door with this name at the property management system',
};
