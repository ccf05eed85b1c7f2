/**
 * Everything secret that a gateway is given or draws, on every path that it takes; and then a look at all that the gateway
 * has stored, said, shown and sent, before and after it was killed: none of it is there in clear.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import openapi from '../../docs/openapi.json' with { type: 'json' };
import { decrypted } from '../../src/platform/age.ts';
import { openReader } from '../../src/platform/database/connection.ts';
import { openVault } from '../../src/platform/vault.ts';
import { issue } from '../services/auth/issuer.ts';
import { INSTANT } from '../simulators/encoder/commands.ts';
import { found, secret } from './search.ts';
import {
  AUDIENCE,
  block,
  type CanarySite,
  ISSUER,
  LOCK,
  NETWORK,
  openCanarySite,
  partOf,
  waitFor,
  ZGATE,
} from './site.ts';
import { storeUsers } from './users.ts';

const TIMINGS = { ...INSTANT, cardTimeoutMs: 600_000 };

it('finds a secret in every form it could have', () => {
  const key = randomBytes(16);
  const forms = [
    key,
    key.toString('hex'),
    key.toString('hex').toUpperCase(),
    [...key].join(', '),
    JSON.stringify([...key]),
    JSON.stringify({ beside: 'a', key: key.toString('base64') }),
    `a${key.toString('base64url')}`,
    Buffer.concat([Buffer.from('x'), key]).toString('base64'),
    Buffer.concat([Buffer.from('xy'), key, Buffer.from('z')]).toString('base64'),
    Buffer.from(key).reverse(),
    key.subarray(0, 9).toString('hex'),
    [...key].map((byte) => byte.toString(16).padStart(2, '0')).join(':'),
  ];
  const places = forms.map((form, index) => ({
    name: `form ${index}`,
    content: Buffer.concat([Buffer.from('before'), Buffer.from(form), Buffer.from('after')]),
  }));
  expect(found([secret('key', key)], places)).toEqual(places.map(({ name }) => `key: ${name}`));
  expect(found([secret('key', randomBytes(16))], places)).toEqual([]);
  expect(found([secret('key', key, 'form 0')], places.slice(0, 1))).toEqual([]);
});

it('shows no secret in clear, wherever it came in and whatever became of the gateway', {
  timeout: 240_000,
}, async () => {
  const all = await openCanarySite();
  const stopFollowing = follow(all);
  const [requestId] = await Promise.all([writeKeys(all), pairReader(all), joinLock(all)]);
  await signIn(all);
  await sendNonsense(all);
  for (const pid of all.processes()) process.kill(pid, 'SIGUSR1');
  hideWhatWasDrawn(all);
  await lookAround(all, requestId);
  const archive = await backUp(all);
  await stopFollowing();
  const { places, secrets, stored, site } = all;
  expect(site.upstream.deliveries).not.toEqual([]);
  expect(found(secrets, [...places, ...stored()])).toEqual([]);
  expect(
    found(secrets, [{ name: 'upstream', content: Buffer.from(JSON.stringify(site.upstream.deliveries)) }]),
  ).toEqual([]);
  expect(
    found(
      secrets.filter(({ name }) => !INSIDE_AN_ARCHIVE.test(name)),
      [archive],
    ),
  ).toEqual([]);

  // A debugger could read all of them in memory.
  expect(readFileSync(site.daemon.logFile, 'utf8')).not.toContain('Debugger listening');

  await site.daemon.kill();
  await site.daemon.start();
  await waitFor(async () => expect((await readerState(all)).security).toBe('secure'));
  expect(found(secrets, stored())).toEqual([]);
});

/** What a gateway is restored with; an archive is encrypted. */
const INSIDE_AN_ARCHIVE = /^(key of the vault|password of the|credential in|private key)/;

/** All live events, from here on. */
function follow({ gatehouse }: CanarySite): () => Promise<void> {
  const stop = new AbortController();
  const ended = gatehouse(['events', 'tail', '--json'], { stopping: stop.signal });
  return async () => {
    stop.abort();
    const { stdout } = await ended;
    expect(stdout).toContain('gatehouse.');
  };
}

/** Keys that are written, that wait for a card, that are cancelled, and that are refused; returns the id of what waits. */
async function writeKeys({ site, hide, ask, gatehouse, write }: CanarySite): Promise<string> {
  const encoder = await site.addEncoder('desk-1', { endlessCards: false, timings: TIMINGS });
  encoder.start();
  await encoder.process.waitFor(({ event }) => event === 'connected');
  const bearer = site.tokens['front-desk'];
  const data = (name: string) => [{ keyId: randomUUID(), blocks: [hide(`key ${name}`, block())] }];
  const path = (id: string) => `/encoder/desk-1/write-request/${id}`;
  const put = (id: string, entries: unknown, to = path(id)) =>
    ask('PUT', to, { bearer, body: { data: entries }, headers: { 'idempotency-key': randomUUID() } });
  const status = async (id: string) => (await ask('GET', path(id), { bearer })).body.entries[0].status;

  encoder.command({ do: 'card' });
  expect((await put('first', data('that is written'))).status).toBe(202);
  await waitFor(async () => expect(await status('first')).toBe('written'));
  encoder.command({ do: 'card' });
  const file = write('keys.json', JSON.stringify({ data: data('written by hand') }));
  expect(await gatehouse(['write-keys', 'desk-1', file])).toMatchObject({ code: 0 });

  expect((await put('waits', data('that waits for a card'))).status).toBe(202);
  await waitFor(async () => expect(await status('waits')).toBe('cardRequested'));
  expect((await put('cancelled', data('that is cancelled'))).status).toBe(202);
  expect((await ask('DELETE', path('cancelled'), { bearer })).body.status).toBe('cancelled');
  expect((await put('waits', data('under a name that is used'))).status).toBe(422);
  expect((await put('r', data('for no encoder'), '/encoder/none/write-request/r')).status).toBe(404);
  const [entry] = data('with a field too many');
  expect((await put('r', [{ ...entry, pin: '1' }])).status).toBe(400);
  expect(
    (
      await put(
        'r',
        data('that is no list').map((one) => ({ ...one, blocks: one.blocks[0] })),
      )
    ).status,
  ).toBe(400);
  const [odd] = data('in an object');
  expect((await put('r', [{ ...odd, blocks: [{ value: odd?.blocks[0] }] }])).status).toBe(400);
  const cut = `{"data":[{"keyId":"x","blocks":["${hide('key in JSON that is cut short', block())}`;
  expect((await ask('PUT', path('r'), { bearer, body: cut })).status).toBe(400);
  return 'waits';
}

const readerState = async ({ ask, site }: CanarySite) => {
  const bearer = site.tokens['service-tool'];
  const { items } = (await ask('GET', '/network/rs485', { bearer })).body;
  const id = items[0]?.deviceId;
  return id === undefined ? {} : (await ask('GET', `/network/rs485/${id}/state`, { bearer })).body;
};

/** The bus is traced and decrypted while the reader gets its key, and reads a card. */
async function pairReader(all: CanarySite): Promise<void> {
  const { ask, site, gatehouse, readers, hide, outside, places } = all;
  const bearer = site.tokens['service-tool'];
  await waitFor(async () => expect((await readerState(all)).security).toBe('unpaired'));
  const stop = new AbortController();
  const file = join(outside, 'readers.pcapng');
  const trace = gatehouse(['bus', 'trace', 'readers', '--decrypt', '--file', file], {
    stopping: stop.signal,
  });
  await waitFor(() => expect(existsSync(file)).toBe(true));
  const pairing = await ask('POST', '/network/rs485/buses/readers/pair', {
    bearer,
    body: { address: 3, seconds: 60 },
  });
  expect(pairing.status).toBe(202);
  await waitFor(async () => expect((await readerState(all)).security).toBe('secure'));
  // An event of its own for administrators (docs/interface.md): they may read it, and the database keeps it for them.
  const card = hide(
    'card at a reader',
    randomBytes(8),
    'events tail',
    'answer to GET /events/log',
    'gatehouse.db',
    'gatehouse.db-wal',
    'archive',
  ).toString('hex');
  await readers.set(3, { osdp: { card: { bits: 64, data: card } } });
  await waitFor(() => expect(readFileSync(file).includes('a card or what was typed')).toBe(true));
  stop.abort();
  expect((await trace).code).toBe(0);
  places.push({ name: file, content: readFileSync(file) });
}

/** With its install code; its PIN for the radio is needed to unlock it, it has users, another PIN is typed, and a card is held to it. */
async function joinLock(all: CanarySite): Promise<void> {
  const { ask, site, zigbee, hide, installCode, radioPin, typedPin } = all;
  const bearer = site.tokens['service-tool'];
  const zgate = `/network/zgate/${ZGATE}`;
  const open = (code: string) =>
    ask('POST', `${zgate}/permit-join`, {
      bearer,
      body: { seconds: 60, installCodes: [{ mac: LOCK, code }] },
    });
  const isUp = async () => (await ask('GET', zgate, { bearer })).body.connectionState.connected;
  await waitFor(async () => expect(await isUp()).toBe(true));
  const wrong = installCode.replace(/..$/, (crc) => (crc === '00' ? 'ff' : '00'));
  expect((await open(wrong)).status).toBe(400);
  expect((await open(installCode)).status).toBe(200);
  expect(await zigbee.join(LOCK)).toBe('joined');
  const door = async () => (await ask('GET', '/access/doors', { bearer })).body.items[0]?.id;
  const path = await waitFor(async () => {
    const id = await door();
    expect(id).toBeDefined();
    return `/access/doors/${id}`;
  });
  const state = async () => (await ask('GET', `${path}/state`, { bearer })).body;
  await waitFor(async () => expect(await state()).toMatchObject({ configuration: { inForce: true } }));
  const setPin = (pin: unknown) =>
    ask('PUT', `${path}/rf-pin`, { bearer: site.tokens['front-desk-admin'], body: { pin } });
  expect((await setPin(`${hide('PIN with a letter', '86420975')}x`)).status).toBe(400);
  expect((await setPin(radioPin)).status).toBe(200);
  const unlocked = await ask('POST', `${path}/unlock`, { bearer, body: {} });
  expect(unlocked.body).toMatchObject({ outcome: 'confirmed' });
  await storeUsers(all, path);
  const lastEvent = async () => (await ask('GET', path, { bearer })).body.connectionState.lastEvent;
  for (const change of [
    { pin: typedPin },
    { card: hide('card at a lock', randomBytes(8)).toString('hex') },
  ]) {
    const before = await lastEvent();
    await zigbee.set(LOCK, change);
    await waitFor(async () => expect(await lastEvent()).not.toBe(before));
  }
}

/** Tokens, codes and cookies: good ones, ended ones and wrong ones, also where they do not belong. */
async function signIn({ site, hide, ask, gatehouse, issuer }: CanarySite): Promise<void> {
  const { daemon, tokens } = site;
  const admin = tokens['service-tool'];
  const make = async (name: string, path: string, field: string, body: object) => {
    const { body: made } = await ask('POST', path, { bearer: admin, body, secretly: true });
    const text = String(made[field]);
    hide(name, text.startsWith('gwt_') ? partOf(text) : text);
    return { id: made.id, text };
  };
  const made = await make('token over the network', '/tokens', 'token', {
    label: 'tool',
    roles: ['service-tool'],
  });
  expect((await ask('GET', '/encoder', { bearer: made.text })).status).toBe(200);
  const renewed = await gatehouse(['token', 'renew', made.id], { secretly: true });
  hide('token that was renewed', partOf(renewed.stdout.trim()));
  expect((await ask('GET', '/encoder', { bearer: renewed.stdout.trim() })).status).toBe(200);
  expect((await ask('DELETE', `/tokens/${made.id}`, { bearer: admin })).status).toBe(200);
  expect((await ask('GET', '/encoder', { bearer: made.text })).status).toBe(401);

  const labels = { label: 'night shift', roles: ['service-tool'] };
  const code = await make('login code', '/login-codes', 'code', labels);
  const byHand = await gatehouse(['login-code', '--json', '--role', 'pms', '--label', 'x'], {
    secretly: true,
  });
  hide('login code by hand', JSON.parse(byHand.stdout).code);
  const headers = { 'sec-fetch-site': 'same-origin' };
  const signedIn = await ask('POST', '/session', { headers, body: { code: code.text }, secretly: true });
  const [session = ''] = String(signedIn.headers['set-cookie']).split(';');
  hide('cookie', partOf(session.slice(session.indexOf('gws_'))));
  expect((await ask('GET', '/session', { headers: { ...headers, cookie: session } })).status).toBe(200);
  for (const wrong of [code.text, hide('wrong login code', block())])
    expect((await ask('POST', '/session', { headers, body: { code: wrong } })).status).toBe(401);

  const claims = {
    iss: ISSUER,
    aud: AUDIENCE,
    system_id: (await daemon.callLocally('GET', '/local/status')).body.systemId,
  };
  const signatureOf = (token: string) => token.slice(token.lastIndexOf('.') + 1);
  for (const [name, status, aud] of [
    ['good', 200, AUDIENCE],
    ['foreign', 401, 'kitchen'],
  ] as const) {
    const token = await issue(issuer, Date.now(), { ...claims, aud });
    hide(`${name} token of the identity provider`, signatureOf(token));
    expect((await ask('GET', '/encoder', { bearer: token })).status).toBe(status);
  }
}

/** Where secrets do not belong, and programs and people put them all the same. */
async function sendNonsense({ site, hide, ask }: CanarySite): Promise<void> {
  const bearer = site.tokens['service-tool'];
  const wrong = hide('text that is no token', block());
  const expected: [string, string, object, number][] = [
    ['GET', '/encoder', { bearer: wrong }, 401],
    ['GET', '/encoder', { bearer: `gwt_0123456789ab_${wrong}${wrong.slice(0, 11)}_000000` }, 401],
    ['GET', '/encoder', { headers: { authorization: `Basic ${btoa(`desk:${wrong}`)}` } }, 401],
    ['GET', '/encoder', { headers: { cookie: `__Host-gatehouse=${wrong}` } }, 401],
    ['GET', `/encoder?access_token=${wrong}`, {}, 401],
    ['GET', `/${wrong}`, { bearer }, 404],
    ['GET', '/events', { bearer: wrong, headers: { 'last-event-id': wrong } }, 401],
  ];
  for (const [method, path, sent, status] of expected)
    expect((await ask(method, path, { ...sent, secretly: true })).status, path).toBe(status);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyText = hideKey(
    hide,
    'private key in place of a certificate',
    privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
  const admin = site.tokens['front-desk-admin'];
  for (const cert of [keyText, keyText + readFileSync(site.daemon.caFile)])
    expect((await ask('PUT', `/network/${NETWORK}`, { bearer: admin, body: { cert } })).status).toBe(400);
}

/** What the gateway has drawn by itself, and keeps. */
function hideWhatWasDrawn({ data, hide }: CanarySite): void {
  const vaultFile = join(data, 'keys/vault.key');
  hide('key of the vault', readFileSync(vaultFile), '/keys/vault.key');
  const vault = openVault(vaultFile, { create: false });
  using database = openReader(join(data, 'gatehouse.db'));
  const sealed = (sql: string) =>
    database.prepare<[], { sealed: Buffer }>(sql).get()?.sealed ?? Buffer.alloc(0);
  const network = vault.open(sealed('SELECT sealed FROM zgate_network'), `zgate network ${ZGATE}`);
  hide('network key', Buffer.from(JSON.parse(network.toString()).networkKey, 'hex'));
  const osdp = vault.open(sealed('SELECT sealed FROM osdp_key'), 'osdp key readers 3');
  hide('key of the reader', osdp);
  for (const file of readdirSync(join(data, 'pki'))) {
    const text = readFileSync(join(data, 'pki', file), 'latin1');
    if (text.includes('PRIVATE KEY')) hideKey(hide, `private key in ${file}`, text, `/pki/${file}`);
  }
}

/** Of an EC key in PKCS #8 the number alone: what is before it says what kind of key it is, what is behind it is public. */
function hideKey(
  hide: CanarySite['hide'],
  name: string,
  text: string | Buffer,
  ...mayBeIn: string[]
): string {
  hide(
    name,
    Buffer.from(String(createPrivateKey(text).export({ format: 'jwk' }).d), 'base64url'),
    ...mayBeIn,
  );
  return String(text);
}

/** Whatever can be read over the interface by those who may read most, and printed by the command line. */
async function lookAround(
  { ask, site, gatehouse, places, data }: CanarySite,
  requestId: string,
): Promise<void> {
  const bearer = site.tokens['service-tool'];
  const [device, door, job] = await Promise.all(
    ['/network/rs485', '/access/doors', '/jobs'].map(
      async (path) => (await ask('GET', path, { bearer })).body.items[0],
    ),
  );
  const ids: Record<string, string> = {
    encoderId: 'desk-1',
    requestId,
    doorId: door.id,
    userId: '4',
    netId: NETWORK,
    id: job.id,
  };
  const paths = Object.entries(openapi.paths).flatMap(([path, methods]) => ('get' in methods ? [path] : []));
  for (const path of paths.filter((one) => one !== '/events')) {
    ids.deviceId = path.includes('zgate') ? ZGATE : device.deviceId;
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => ids[name] ?? '');
    // Who may enter is not a technician's business.
    const reader = path === '/access/cards' ? site.tokens['front-desk-admin'] : bearer;
    const { status } = await ask('GET', filled, { bearer: reader });
    expect([path, status]).toEqual([path, 200]);
  }
  for (const path of ['/local/status', '/local/zgates'])
    places.push({
      name: path,
      content: Buffer.from(JSON.stringify((await site.daemon.callLocally('GET', path)).body)),
    });
  for (const argv of [
    ['status', '--json'],
    ['doctor', '--json'],
    ['export'],
    ['support-bundle'],
    ['audit', 'verify'],
    ['audit', 'export', '--out', join(data, 'audit.jsonl'), '--json'],
    ['token', 'list'],
    ['bus', 'status'],
    ['zgate', 'list'],
  ])
    expect([argv, await gatehouse(argv)]).toMatchObject([argv, { stdout: expect.stringMatching(/./) }]);
}

/** What an archive of the whole installation holds, decrypted; the archive itself is in the data directory. */
async function backUp({ gatehouse, backupKey }: CanarySite) {
  const { code, stdout, stderr } = await gatehouse(['backup', '--json']);
  expect(code, stderr).toBe(0);
  const archive = (async function* () {
    yield readFileSync(JSON.parse(stdout).file);
  })();
  const content = await buffer(decrypted(archive, { identities: [backupKey.identity] }));
  expect(content.includes('SQLite format 3')).toBe(true);
  return { name: 'archive', content };
}
