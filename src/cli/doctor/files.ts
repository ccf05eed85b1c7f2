/** The data directory: whose it is, and who may read it. */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { filesOfBroker } from '../../platform/config/encoder-broker.ts';
import { filesOfSink, sinksOf } from '../../platform/config/sinks.ts';
import type { Diagnosis, Patient } from './diagnosis.ts';

/** Of the files that are wrong, so many are named. */
const NAMED_MAX = 3;
const FOLDER_DEPTH = 3;
const OTHERS = 0o077;

export function checkFiles({ config }: Patient): Diagnosis[] {
  const { dataDirectory } = config;
  const subject = 'files';
  if (!existsSync(dataDirectory)) {
    const parent = existing(dataDirectory);
    if (!mayMakeIn(parent)) {
      const remedy = `install -d -m 700 -o gatehouse -g gatehouse ${dataDirectory}; under systemd, StateDirectory= makes /var/lib/gatehouse`;
      const text = `${dataDirectory} does not exist, and this user cannot make it in ${parent}`;
      return [{ severity: 'bad', subject, text, remedy }];
    }
    const remedy = 'the first start makes it; under systemd, StateDirectory= does';
    return [{ severity: 'doubtful', subject, text: `${dataDirectory} does not exist yet`, remedy }];
  }
  accessSync(dataDirectory, constants.R_OK | constants.X_OK);
  const owner = statSync(dataDirectory);
  const all = filesBelow(dataDirectory, FOLDER_DEPTH);
  const foreign = all.filter(({ stats }) => stats.uid !== owner.uid);
  const open = all.filter(({ stats }) => stats.isFile() && (stats.mode & OTHERS) !== 0);
  const unreadable = namedFiles(config).filter(
    (file) => existsSync(file) && !readableFor(owner, statSync(file)),
  );
  const found: Diagnosis[] = [];
  if (foreign.length > 0) {
    const remedy = `chown -R --reference=${dataDirectory} ${dataDirectory}`;
    const text = `not of the owner of ${dataDirectory}: ${named(foreign.map(({ path }) => path))}`;
    found.push({ severity: 'bad', subject, text, remedy });
  }
  if ((owner.mode & OTHERS) !== 0) {
    const text = `${dataDirectory} is open to other users`;
    found.push({ severity: 'bad', subject, text, remedy: `chmod 700 ${dataDirectory}` });
  } else if (open.length > 0) {
    const remedy = `chmod -R go= ${dataDirectory}, but for admin.sock`;
    found.push({
      severity: 'doubtful',
      subject,
      text: `others may read ${named(open.map(({ path }) => path))}`,
      remedy,
    });
  }
  for (const file of unreadable) {
    const remedy = `chgrp gatehouse ${file} && chmod 640 ${file}`;
    found.push({ severity: 'bad', subject, text: `the service may not read ${file}`, remedy });
  }
  return found.length > 0
    ? found
    : [{ severity: 'good', subject, text: `${dataDirectory}, ${all.length} files` }];
}

function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path));
}

/** Root may write everywhere by the mode, but not into /proc or /sys, or onto what is mounted to be read only. */
function mayMakeIn(folder: string): boolean {
  try {
    rmdirSync(mkdtempSync(join(folder, '.gatehouse-')));
    return true;
  } catch {
    return false;
  }
}

function filesBelow(folder: string, depth: number): { path: string; stats: Stats }[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats) return [];
    return [{ path, stats }, ...(stats.isDirectory() && depth > 1 ? filesBelow(path, depth - 1) : [])];
  });
}

function namedFiles(config: Patient['config']): string[] {
  const { http, encoders, auth } = config;
  const sinks = sinksOf(config).flatMap((sink) => filesOfSink(sink).map(({ file }) => file));
  const own = [http.certFile, http.keyFile];
  const { jwksFile, caFile: oidcCa } = auth.oidc ?? {};
  const maybe = [...own, ...sinks, jwksFile, oidcCa];
  const broker = filesOfBroker(encoders.broker).map(({ file }) => file);
  return [...encoders.vendorRoots, ...broker, ...maybe.filter((file) => file !== undefined)];
}

/** By the mode alone, since root, who runs this, could read everything. */
function readableFor(owner: Stats, { uid, gid, mode }: Stats): boolean {
  if (owner.uid === 0) return true;
  if (uid === owner.uid) return (mode & 0o400) !== 0;
  return (mode & (gid === owner.gid ? 0o040 : 0o004)) !== 0;
}

function named(paths: string[]): string {
  const more = paths.length - NAMED_MAX;
  return paths.slice(0, NAMED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
