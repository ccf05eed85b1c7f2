/**
 * The makes of coordinators, and what differs by make in the tests of Zigbee. vitest.config.ts runs each test file that has a
 * coordinator (make.ts) once for each: a plan that names no make is of that of its run.
 */
export const MAKES = {
  zstack: {
    adapter: 'zstack',
    called: 'a Z-Stack coordinator',
    /** Why a link is lost whose coordinator falls silent. */
    silence: /answer/,
    /** As a gateway reports it. */
    reported: {
      type: 'zstack',
      platform: { version: '20230507' },
      apps: [{ name: 'ZStack3x0', version: '2.7.1' }],
    },
    /** The extended PAN id in its memory has the bytes of that of the library the other way round. */
    turnsExtendedPanId: true,
    /** How often a link is started until a network is restored: EmberZNet takes an IEEE address at its start. */
    restoringStarts: 1,
    /** Unmodified, the library restores the IEEE address as well. */
    libraryRestoresIeee: true,
    /** An install code stays in the coordinator until it is taken back; else it ends with the window, the link, or the power. */
    keepsInstallCodes: true,
    /** Its table of children can be changed, so that one that went to a router unheard is sought. */
    seeksChildren: true,
    /** So often the stack sends a frame that is to be answered, where an unmodified library lets it. */
    attempts: 1,
    /** What the library says then. */
    says: {
      unanswered: /Timeout/,
      noRoute: 'NWK_NO_ROUTE',
      noAck: 'MAC_NO_ACK',
      busyChannel: 'MAC_CHANNEL_ACCESS_FAILURE',
      bufferFull: 'BUFFER_FULL',
      expired: 'MAC_TRANSACTION_EXPIRED',
      /** Of a lock that is away, and of one that sleeps. */
      offline: 'MAC_NO_ACK',
      unfetched: /MAC_TRANSACTION_EXPIRED/,
      unplugged: /opening socket/,
    },
    /** Test files of this make alone: of its wire, and of what the other one does not have. */
    alone: [
      'drivers/zigbee/z-stack*',
      'drivers/zigbee/fuzz.*',
      'drivers/zigbee/herdsman/port.*',
      'test/simulators/zigbee/stick/*',
    ],
  },
  ember: {
    adapter: 'ember',
    called: 'an EmberZNet coordinator',
    silence: /connection to the coordinator/,
    reported: {
      type: 'ember',
      platform: { version: '7.4.3 [GA]' },
      apps: [{ name: 'EmberZNet', version: '7.4.3' }],
    },
    turnsExtendedPanId: false,
    restoringStarts: 2,
    libraryRestoresIeee: false,
    keepsInstallCodes: false,
    seeksChildren: false,
    attempts: 4,
    says: {
      unanswered: /timed out/,
      // messageSentHandler has one status for all of them.
      noRoute: 'Delivery failed',
      noAck: 'Delivery failed',
      busyChannel: 'Delivery failed',
      bufferFull: 'Delivery failed',
      expired: 'Delivery failed',
      offline: 'timed out',
      unfetched: /timed out/,
      unplugged: /ASH|open|socket|HOST_FATAL/,
    },
    alone: [
      'drivers/zigbee/ember*',
      'drivers/zigbee/herdsman/ember-*',
      'drivers/zigbee/other-make.*',
      'test/simulators/zigbee/ncp/*',
    ],
  },
} as const;

/**
 * What is least about the coordinator and takes longest: `npm test` runs it with Z-Stack, so that it ends within half an hour,
 * and `npm test -- --mode makes` with both.
 */
export const LONG_WITH_BOTH = [
  'gateway',
  'half-updates',
  'link',
  'lock-families',
  'lock-users',
  'pty',
  'recovery',
  'shared-addresses',
  'sleeping-locks',
  'standard-locks',
].map((name) => `drivers/zigbee/${name}.test.ts`);
