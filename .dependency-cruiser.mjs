/** Who may import what (docs/architecture.md, Layers), for dependency-cruiser: a part of `npm run check`. */

/** The rooms of src, from the ground up: a file imports from its own room and from those below it. */
const ROOMS = ['platform', 'services', 'resources', 'app', 'cli'];
/** Within a room a folder imports of another one types only, and only of one that stands before it here. */
const SLICES = [
  ...['audit', 'events', 'actuations', 'reconcile', 'jobs', 'catalogue'].map((name) => `services/${name}`),
  ...['pki', 'auth', 'backup', 'cluster', 'status', 'metrics'].map((name) => `services/${name}`),
  ...['encoders', 'writes', 'networks', 'zgates', 'rs485'].map((name) => `resources/${name}`),
  ...['doors', 'access', 'site-import'].map((name) => `resources/${name}`),
];
/** The one file that imports a library; others of its folder may import its types. */
const LIBRARIES = {
  '@hono/node-server': 'src/platform/http/server.ts',
  '@peculiar/x509': 'src/services/pki/certificates.ts',
  '@prometheus-io/client': 'src/services/metrics/exposition.ts',
  '@serialport/(?:bindings-cpp|stream)': 'drivers/bus/serial-port.ts',
  '@serialport/parser-delimiter': 'drivers/dcon/wire.ts',
  aedes: 'drivers/encoder/embedded.ts',
  'age-encryption': 'src/platform/age.ts',
  'better-sqlite3': 'src/platform/database/(connection.ts|wal-checkpoint-thread.js)',
  commander: 'src/cli/program.ts',
  hono: 'src/platform/http/app.ts',
  jose: 'src/platform/jose.ts',
  'modbus-serial': 'drivers/modbus/messages.ts',
  mqtt: 'drivers/encoder/mqtt-client.ts',
  'mqtt-packet': 'drivers/encoder/embedded.ts',
  pino: 'src/platform/log.ts',
  'reflect-metadata': 'src/services/pki/certificates.ts',
  serialport: 'drivers/bus/serial-port.ts',
  yaml: 'src/platform/yaml/yaml-file.ts',
  'zigbee-herdsman': 'drivers/zigbee/herdsman/herdsman.ts',
};
const EVERYWHERE = ['zod', '@hono/zod-openapi'];
const npm = (names) => `(?:^|/)(?:node_modules|@types)/(?:${names.join('|')})(?:/|$)`;
const any = (names) => `^src/(?:${names.join('|')})/`;

/** Severity is `error` in all of them: a warning is looked at by no one. */
const rule = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to });
const typeOnly = { dependencyTypesNot: ['type-only'] };

export default {
  forbidden: [
    rule('drivers-apart', 'A driver imports nothing of src.', { path: '^drivers/' }, { path: '^src/' }),
    rule(
      'console-apart',
      'No file of the daemon is in the pages.',
      { path: '^src/console/' },
      {
        path: '^(src|drivers)/',
        pathNot: '^src/console/',
        ...typeOnly,
      },
    ),
    ...ROOMS.slice(0, -1).map((room, index) =>
      rule(
        'rooms',
        `${room} imports nothing of the rooms above it.`,
        { path: any([room]) },
        { path: any([...ROOMS.slice(index + 1), 'console']) },
      ),
    ),
    rule(
      'slices-types-only',
      "Of another slice only types are imported, but for the sections of a site's file.",
      { path: '^src/(services|resources)/([^/]+)/' },
      { path: '^src/$1/', pathNot: ['^src/$1/$2/', '/site-entry\\.ts$'], ...typeOnly },
    ),
    ...SLICES.map((slice, index) =>
      rule(
        'slices-order',
        `A slice imports nothing of one that stands behind it; ${slice} does.`,
        { path: any([slice]) },
        { path: any(SLICES.slice(index + 1)) },
      ),
    ),
    rule(
      'slices-order',
      'A new slice has its place in SLICES.',
      { path: any(['services', 'resources']), pathNot: any(SLICES) },
      { path: any(['services', 'resources']) },
    ),
    ...Object.entries(LIBRARIES).flatMap(([library, owner]) => [
      rule(
        'one-importer',
        `${library} belongs to ${owner}.`,
        { pathNot: `^${owner}$` },
        { path: npm([library]), ...typeOnly },
      ),
      rule(
        'one-importer',
        `Types of ${library} stay beside ${owner}.`,
        { pathNot: `^${owner.replace(/[^/]*$/, '[^/]*$')}` },
        { path: npm([library]) },
      ),
    ]),
    rule(
      'one-importer',
      'A new library has its file in LIBRARIES.',
      { pathNot: '^src/console/' },
      { path: '(^|/)node_modules/', pathNot: npm([...Object.keys(LIBRARIES), ...EVERYWHERE]) },
    ),
    rule(
      'clock',
      'Timers come from a Clock.',
      { pathNot: '^src/(platform/clock.ts$|console/)' },
      { path: '^timers' },
    ),
    rule(
      'process',
      'process is for the programs.',
      { pathNot: '^src/(main|platform/field/host/host|platform/clock).ts$' },
      { path: '^process$' },
    ),
    rule('no-ring', 'No ring of imports, of types neither.', {}, { circular: true }),
    rule('resolved', 'An import leads somewhere.', {}, { couldNotResolve: true }),
  ],
  options: {
    parser: 'tsc',
    tsPreCompilationDeps: true,
    exclude: { path: '\\.test\\.ts$' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
