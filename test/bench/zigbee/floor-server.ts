/**
 * The least that an unlock takes with what is promised: HTTPS, the intent and the outcome each durable in SQLite, and the
 * coordinator in a process of its own (floor-host.ts). Without routes, roles, schemas, doors, a chain of audit records, or
 * a library of Zigbee: what the gateway takes more is what these cost.
 */
import { fork } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openConnection } from '../../../src/platform/database/connection.ts';
import { writeCertificate } from '../../../src/services/pki/certificates.ts';

/** Twice for each unlock: it begins, and its intent is stored. */
export interface FloorCommand {
  id: number;
  /** The network address of the lock. */
  nwk: number;
}

const HOST = join(import.meta.dirname, 'floor-host.ts');
const DAY_MS = 86_400_000;

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-floor-'));
const file = join(folder, 'floor.db');
writeFileSync(file, '');
const database = openConnection(file);
database.exec('CREATE TABLE audit (id INTEGER PRIMARY KEY, what TEXT NOT NULL, outcome TEXT) STRICT');
const intend = database.prepare<[number, string]>('INSERT INTO audit (id, what) VALUES (?, ?)');
const conclude = database.prepare<[string, number]>('UPDATE audit SET outcome = ? WHERE id = ?');

const responses = new Map<number, ServerResponse>();
const host = fork(HOST, process.argv.slice(2));
host.on('message', (id: number) => {
  conclude.run('confirmed', id);
  responses.get(id)?.end('{"outcome":"confirmed"}');
  responses.delete(id);
});

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const cert = await writeCertificate(
  {
    subject: [['CN', 'floor']],
    spki: publicKey.export({ type: 'spki', format: 'der' }),
    notBefore: Date.now() - DAY_MS,
    notAfter: Date.now() + DAY_MS,
    names: ['127.0.0.1'],
  },
  { key: privateKey },
);
const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
let last = 0;
const server = createServer({ key, cert }, ({ url = '' }, response) => {
  last += 1;
  const command: FloorCommand = { id: last, nwk: Number(url.slice(1)) };
  responses.set(command.id, response);
  // The coordinator shows that it reads its port while the intent is written to the disk.
  host.send(command);
  intend.run(command.id, url);
  host.send(command);
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port, cert })}\n`);
});
// Its parent ends it by closing this.
process.stdin.resume().on('end', () => {
  rmSync(folder, { recursive: true });
  process.exit();
});
