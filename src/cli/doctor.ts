/** `gatehouse doctor`: looks at everything an installation needs, and says of each fault what mends it. */
import { adminSocketOf, type Config } from '../platform/config/config.ts';
import { readConfig } from '../platform/config/config-file.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import type { Status } from '../services/status/schema.ts';
import { configFile, openClient } from './client.ts';
import { isDataDirectoryHeld } from './data-directory.ts';
import { checkCertificates } from './doctor/certificates.ts';
import { type Diagnosis, hindranceOf, type Patient } from './doctor/diagnosis.ts';
import { checkFiles } from './doctor/files.ts';
import { checkClock, checkDisk, checkFsync, checkSerialPorts } from './doctor/host.ts';
import { checkBroker, checkPorts, checkSinks } from './doctor/network.ts';
import { checkParts } from './doctor/parts.ts';
import { doorFindings } from './door-findings.ts';
import { shownFindings } from './findings.ts';
import { asOwnerOf } from './folder-owner.ts';
import { gatewayFinding } from './gateway-finding.ts';
import { mayEnter, readerFor } from './service-user.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';
import { configurationFindings, ownCertificateFindings, tokenFinding } from './status.ts';

const CHECKS: readonly ((patient: Patient) => Diagnosis[] | Promise<Diagnosis[]>)[] = [
  checkFiles,
  checkParts,
  checkCertificates,
  checkClock,
  checkDisk,
  checkFsync,
  checkSerialPorts,
  checkPorts,
  checkBroker,
  checkSinks,
];

/** Returns whether nothing is wrong; doubts are allowed. */
export async function examine(options: { config?: string; json?: boolean }, shell: Shell): Promise<boolean> {
  const diagnoses = await diagnosesOf(configFile(options.config, shell), shell);
  const ok = diagnoses.every(({ severity }) => severity !== 'bad');
  if (options.json) {
    printJson(shell, { ok, checks: diagnoses.map(({ remedy = null, ...found }) => ({ ...found, remedy })) });
    return ok;
  }
  shell.stdout.write(shownFindings(diagnoses, shell.stdout));
  return ok;
}

async function diagnosesOf(file: string, shell: Shell): Promise<Diagnosis[]> {
  const subject = 'configuration';
  let config: Config;
  const skipped: string[] = [];
  try {
    const reader = readerFor(shell, (path) => void skipped.push(path));
    config = readConfig(file, { reader, checkFiles: true, checkAdapters: true });
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const isDenied = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES';
    const remedy = isDenied
      ? 'sudo gatehouse doctor'
      : `correct ${file}; nothing else can be looked at before`;
    return [{ severity: 'bad', subject, text: error.message, remedy }];
  }
  const daemon = await askDaemon(config, shell);
  const patient: Patient = { config, shell, running: daemon.running };
  const found: Diagnosis[] = [{ severity: 'good', subject, text: file }, ...daemon.diagnoses];
  if (skipped.length > 0)
    found.push({
      severity: 'doubtful',
      subject,
      text: `not checked (needs root): ${skipped.join(', ')}`,
      remedy: 'sudo gatehouse doctor',
    });
  const closed = !mayEnter(config.dataDirectory);
  if (closed) found.push(closedDirectory(config.dataDirectory));
  for (const check of CHECKS) {
    if (closed && NEEDS_DATA_DIRECTORY.includes(check)) continue;
    found.push(...(await examined(check, patient)));
  }
  return found;
}

/** These write in the data directory, where the user of the service may have planted links. */
const IN_DATA_DIRECTORY: readonly unknown[] = [checkParts, checkFsync];

/** These have nothing to say to a member of the group, who may not enter the data directory. */
const NEEDS_DATA_DIRECTORY: readonly unknown[] = [
  checkFiles,
  checkParts,
  checkCertificates,
  checkFsync,
  checkSerialPorts,
];

/** That a person may not look is no fault of the installation. */
function closedDirectory(dataDirectory: string): Diagnosis {
  const text = `${dataDirectory}, what is in it and serial ports are for root and the service alone to look at`;
  return { severity: 'doubtful', subject: 'files', text, remedy: 'sudo gatehouse doctor' };
}

/** A check that breaks is a finding, too: the others are still wanted. */
async function examined(check: (typeof CHECKS)[number], patient: Patient): Promise<Diagnosis[]> {
  const { config, shell } = patient;
  try {
    using _user = IN_DATA_DIRECTORY.includes(check) ? asOwnerOf(config.dataDirectory, shell) : undefined;
    return await check(patient);
  } catch (error) {
    const subject = check.name.replace(/^check/, '').toLowerCase();
    const remedy = hindranceOf(error) ?? 'what a start says of it: journalctl -u gatehouse';
    return [{ severity: 'bad', subject, text: `cannot be looked at: ${(error as Error).message}`, remedy }];
  }
}

async function askDaemon(
  config: Config,
  shell: Shell,
): Promise<{ running: boolean; diagnoses: Diagnosis[] }> {
  const subject = 'daemon';
  try {
    const status = await openClient({ socket: adminSocketOf(config) }, shell).call<Status>(
      'GET',
      '/local/status',
    );
    const text = `answers, version ${status.version}`;
    const found: Diagnosis[] = [
      { severity: 'good', subject, text },
      ...configurationFindings(status.configuration),
      ...ownCertificateFindings(status.http.ownCertificate),
      ...status.field.links.map(examinedLink),
      ...doorFindings(status.doors),
      ...status.zgates.warnings.map(gatewayFinding),
      ...status.tokens.map(tokenFinding),
    ];
    return { running: true, diagnoses: found };
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const notRunning = error.exitCode === EXIT.notRunning;
    if (notRunning && isStandby(config)) {
      const standby = 'runs, and is not the active gateway of its cluster: gatehouse cluster status';
      return { running: false, diagnoses: [{ severity: 'good', subject, text: standby }] };
    }
    const [text = ''] = error.message.split('\n');
    const remedy = notRunning
      ? 'systemctl start gatehouse; why it ended: journalctl -u gatehouse'
      : undefined;
    return {
      running: !notRunning,
      diagnoses: [{ severity: 'bad', subject, text, ...(remedy && { remedy }) }],
    };
  }
}

/** It serves nothing before it is the active one. */
function isStandby({ cluster, dataDirectory }: Config): boolean {
  try {
    return cluster !== undefined && isDataDirectoryHeld(dataDirectory);
  } catch {
    return false;
  }
}

function examinedLink({ id, up, lastError }: Status['field']['links'][number]): Diagnosis {
  const subject = `link ${id}`;
  if (up) return { severity: 'good', subject, text: 'is up' };
  const text = `is down: ${lastError ?? 'it is being opened'}`;
  // A driver that refuses says itself what is to be done.
  if (lastError?.startsWith('REFUSED')) return { severity: 'bad', subject, text };
  return {
    severity: 'bad',
    subject,
    text,
    remedy: 'its cable, its power and its port; it comes up by itself',
  };
}
