/**
 * Files judged for the user of the service. Root can read them all, which says nothing of the service; a member of the
 * group may be kept from some, which is no fault of theirs.
 */
import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Config } from '../platform/config/config.ts';
import type { FileReader } from '../platform/config/named-files.ts';
import { ownerOf, type User } from './folder-owner.ts';
import type { Shell } from './shell.ts';

/** As systemd/sysusers.d/gatehouse.conf and the unit (SupplementaryGroups=) have them. */
const SERVICE = 'gatehouse';
const SERIAL_GROUP = 'dialout';
/** Of a mode. */
const READ_AND_WRITE = 6;
/** Folders of the system, with all that is in them but what is Gatehouse's. A site's own folders are elsewhere. */
const SYSTEM = /^\/(?:etc(?!\/gatehouse(?:\/|$))|root|usr|bin|sbin|lib\w*|boot|dev|proc|sys)(?:\/|$)/;
/** Folders that others have in common. */
const SHARED = /^\/(?:(?:home|media|mnt|opt|run|srv|tmp|var)(?:\/(?:lib|log|run|cache|tmp|spool|opt))?)?$/;

export interface ServiceUser extends User {
  name: string;
  group: string;
  groups: number[];
}

/** Who owns the data directory; of one that root owns, or that is not there yet, the user that the installation has made. */
function serviceUser(dataDirectory: string): ServiceUser | undefined {
  const users = entriesOf('/etc/passwd');
  const owner = ownerOf(dataDirectory);
  const entry = users.find(([name, , uid]) => (owner ? Number(uid) === owner.uid : name === SERVICE));
  const { uid, gid } = owner ?? { uid: Number(entry?.[2]), gid: Number(entry?.[3]) };
  if (!owner && !entry) return undefined;
  const [name = String(uid)] = entry ?? [];
  const all = entriesOf('/etc/group');
  const [group = String(gid)] = all.find(([, , id]) => Number(id) === gid) ?? [];
  const isOf = ([other, , , members = '']: string[]) =>
    other === SERIAL_GROUP || members.split(',').includes(name);
  return { uid, gid, name, group, groups: all.filter(isOf).map(([, , id]) => Number(id)) };
}

/** Of the user that the installation has made; undefined: there is none. */
export function serviceGroup(): number | undefined {
  const entry = entriesOf('/etc/group').find(([name]) => name === SERVICE);
  return entry && Number(entry[2]);
}

/** Undefined: this user reads them for itself. `skipped` gets what was not judged. */
export function readerFor(
  shell: Pick<Shell, 'become'>,
  skipped: (file: string) => void = () => {},
): (config: Pick<Config, 'dataDirectory'>) => FileReader | undefined {
  return ({ dataDirectory }) => {
    if (!shell.become) return mayEnter(dataDirectory) ? undefined : memberReader(skipped);
    const user = serviceUser(dataDirectory);
    return user && serviceReader(user, shell.become(user));
  };
}

/** Whether this user may look into the data directory; also when it is not there yet. */
export function mayEnter(dataDirectory: string): boolean {
  if (!existsSync(dataDirectory)) return true;
  try {
    accessSync(dataDirectory, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function memberReader(skipped: (file: string) => void): FileReader {
  return {
    hidden: () => undefined,
    refusal(file) {
      skipped(file);
      return undefined;
    },
    deviceFault: () => undefined,
    folderFault: () => undefined,
    [Symbol.dispose]() {},
  };
}

const COPY_IT = 'copy it to /etc/gatehouse, and name the copy';

/** ProtectHome= and PrivateTmp= of the unit. */
const HIDDEN = /^\/(?:home|root|run\/user|tmp|var\/tmp)(?:\/|$)/;

/** Why the service, as its unit has it, does not see a file or folder, whatever its rights; undefined: it does. Links are followed. */
export function hiddenByUnit(path: string): string | undefined {
  const real = existsSync(path) ? realpathSync(path) : resolve(path);
  return HIDDEN.test(real)
    ? `the service cannot see ${real}: its unit hides /home, /root, /run/user, /tmp and /var/tmp (ProtectHome=, PrivateTmp=)`
    : undefined;
}

/** No command changes rights there: a slip in a name would open or give away what belongs to the system. */
function isOfOthers(path: string): boolean {
  const whole = resolve(path);
  return SYSTEM.test(whole) || SHARED.test(whole);
}

/** `rights` are those of the user, given back with it. */
function serviceReader({ name, group, uid, gid, groups }: ServiceUser, rights: Disposable): FileReader {
  const hidden = (path: string) => (name === SERVICE ? hiddenByUnit(path) : undefined);
  return {
    hidden(file) {
      const reason = hidden(file);
      return reason && `${reason}: ${COPY_IT}`;
    },
    refusal(file) {
      const folder = closedFolder(file);
      const remedy = isOfOthers(folder ?? file)
        ? COPY_IT
        : folder === undefined
          ? `chgrp ${group} ${file} && chmod g+r ${file}`
          : `chgrp ${group} ${folder} && chmod g+x ${folder}`;
      return `the service (user ${name}) may not read ${file}: ${remedy}`;
    },
    folderFault(folder) {
      const reason = hidden(folder);
      if (reason) return `${reason}: name a folder such as /var/lib/gatehouse`;
      const closed = closedFolder(`${folder}/.`);
      const above = closed === folder ? undefined : closed;
      const owner = statSync(folder, { throwIfNoEntry: false })?.uid;
      if (above === undefined && (owner === undefined || owner === uid)) return undefined;
      if (isOfOthers(above ?? folder))
        return `${folder} cannot be a folder of the service (user ${name}): name one of its own, such as /var/lib/gatehouse`;
      return above === undefined
        ? `${folder} is not of the service (user ${name}): chown -R ${name}:${group} ${folder}`
        : `the service (user ${name}) may not enter ${above}: chgrp ${group} ${above} && chmod g+x ${above}`;
    },
    deviceFault(port) {
      const stats = statSync(port, { throwIfNoEntry: false });
      if (!stats) return undefined;
      const ofGroup = [gid, ...groups].includes(stats.gid);
      const granted = stats.uid === uid ? stats.mode >> 6 : ofGroup ? stats.mode >> 3 : stats.mode;
      if ((granted & READ_AND_WRITE) === READ_AND_WRITE) return undefined;
      return `the service (user ${name}) may not open ${port}: chgrp ${SERIAL_GROUP} ${port} && chmod 660 ${port}, by a udev rule for good`;
    },
    [Symbol.dispose]: () => rights[Symbol.dispose](),
  };
}

/** The first folder on the way to the file that this user may not enter. */
function closedFolder(file: string): string | undefined {
  const folder = dirname(resolve(file));
  const above = folder === dirname(folder) ? undefined : closedFolder(folder);
  if (above !== undefined) return above;
  try {
    statSync(`${folder}/.`);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? folder : undefined;
  }
}

function entriesOf(file: string): string[][] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(':'));
  } catch {
    return [];
  }
}
