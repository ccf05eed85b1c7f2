/** `gatehouse doors`, `rs485`, `zgate` and `encoder`: what there is, one of them in full, and changes of it. */
import { yamlText } from '../platform/yaml/yaml-file.ts';
import { allItems, type Client } from './client.ts';
import { CommandFailed, EXIT, printJson, type Shell, styled, table } from './shell.ts';
import { printable } from './terminal-text.ts';

/** As answers have it: the interface is checked where it answers. */
type Item = Record<string, unknown>;

export interface Kind {
  /** What one of them is called. */
  word: string;
  path: string;
  idField: 'id' | 'deviceId';
  /** 4.2 of the specification is a POST. */
  change: 'PUT' | 'POST';
  columns: readonly (readonly [title: string, cell: (item: Item) => unknown])[];
}

const connected = ['CONNECTED', (item: Item) => part(item, 'connectionState', 'connected')] as const;
const version = ['VERSION', (item: Item) => part(item, 'platform', 'version')] as const;

/** `segment` is the <product> segment of the paths of doors. */
export const kinds = (segment: string) =>
  ({
    doors: {
      word: 'door',
      path: `/${segment}/doors`,
      idField: 'id',
      change: 'PUT',
      columns: [
        ['NUMBER', ({ accessPointId }) => accessPointId],
        ['NAME', ({ name }) => name],
        ['PRESENCE', (item) => part(item, 'state', 'presence')],
        ['BATTERY', (item) => part(item, 'state', 'battery')],
        ['LQI', (item) => part(item, 'connectionState', 'lqi')],
        ['APPLIED', (item) => part(item, 'state', 'applied')],
        ['ID', ({ id }) => id],
      ],
    },
    rs485: {
      word: 'RS-485 device',
      path: '/network/rs485',
      idField: 'deviceId',
      change: 'PUT',
      columns: [
        ['HWID', ({ hwId }) => hwId],
        ['NAME', ({ name }) => name],
        ['TYPE', ({ type }) => type],
        connected,
        version,
        ['WANTED', ({ settingsVersion }) => settingsVersion],
        ['REPORTED', ({ reportedSettingsVersion }) => reportedSettingsVersion],
        ['ID', ({ deviceId }) => deviceId],
      ],
    },
    zgate: {
      word: 'Zigbee gateway',
      path: '/network/zgate',
      idField: 'deviceId',
      change: 'PUT',
      columns: [],
    },
    encoder: {
      word: 'encoder',
      path: '/encoder',
      idField: 'id',
      change: 'POST',
      columns: [
        ['ID', ({ id }) => id],
        ['NAME', ({ name }) => name],
        connected,
        ['ALARM', (item) => part(item, 'alarmState', 'raised')],
        version,
        ['ADDRESS', ({ ipAddress }) => ipAddress],
      ],
    },
  }) satisfies Record<string, Kind>;

function part(item: Item, field: string, name: string): unknown {
  return (item[field] as Item | null | undefined)?.[name];
}

export async function listItems(
  kind: Kind,
  options: { where?: string[]; json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const filters = (options.where ?? []).map((text) => pairOf(text).map(encodeURIComponent).join('='));
  const items = await allItems<Item>(kind.path, filters.join('&'), client);
  if (options.json) return printJson(shell, items);
  const head = kind.columns.map(([title]) => title);
  const rows = items.map((item) => kind.columns.map(([, cell]) => String(cell(item) ?? '-')));
  const [first = '', ...lines] = table([head, ...rows]).split(/(?<=\n)/);
  shell.stdout.write(styled(shell.stdout, 'bold', first) + lines.join(''));
}

/** The one with this id or name, whose case does not matter. Throws CommandFailed when there is none, or more than one. */
export async function found(kind: Kind, text: string, client: Client): Promise<Item & { itsId: string }> {
  const { word, idField } = kind;
  const some = await allItems<Item>(kind.path, `name=${encodeURIComponent(text)}`, client);
  const same = (value: unknown) => String(value ?? '').toLowerCase() === text.toLowerCase();
  const byId = some.filter((item) => same(item[idField]));
  const exact = byId.length > 0 ? byId : some.filter(({ name, hwId }) => same(name) || same(hwId));
  const [one] = exact;
  if (one && exact.length === 1) return { ...one, itsId: String(one[idField]) };
  const others = (exact.length > 0 ? exact : some)
    .slice(0, 5)
    .map((item) => `\n  ${item[idField]}  ${item.name ?? ''}`);
  const reason =
    exact.length > 0 ? `${exact.length} have the name ${text}: give the id` : `There is no ${word} ${text}`;
  throw new CommandFailed(`${reason}.${others.length > 0 ? ` There are:${others.join('')}` : ''}`);
}

export async function showItem(
  kind: Kind,
  text: string,
  { json }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const at = `${kind.path}/${encodeURIComponent((await found(kind, text, client)).itsId)}`;
  const resource = await client.call<Item>('GET', at);
  const state = await client.call<Item>('GET', `${at}/state`);
  if (json) return printJson(shell, { ...resource, state });
  const { [kind.idField]: id, name, ...others } = resource;
  shell.stdout.write(printable(yamlText({ [kind.idField]: id, name, ...others, state })));
}

export async function setItem(
  kind: Kind,
  text: string,
  fields: string[],
  { json }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const body = Object.fromEntries(fields.map(fieldOf));
  const { itsId } = await found(kind, text, client);
  const changed = await client.call<Item>(kind.change, `${kind.path}/${encodeURIComponent(itsId)}`, body);
  if (json) return printJson(shell, changed);
  shell.stdout.write(`The ${kind.word} ${printable(itsId)} is changed: ${Object.keys(body).join(', ')}.\n`);
}

/** Prints its id, which other commands take. */
export async function addDoor(
  { path, idField }: Kind,
  name: string,
  fields: string[],
  { json }: { json?: boolean },
  client: Client,
  shell: Shell,
): Promise<void> {
  const door = await client.call<Item>('POST', path, { ...Object.fromEntries(fields.map(fieldOf)), name });
  if (json) return printJson(shell, door);
  shell.stdout.write(`The door ${printable(name)} is made: ${printable(String(door[idField]))}\n`);
}

/** Fields that hold text: `pmsId=101` is no number. */
const TEXTS = ['name', 'description', 'groupId', 'pmsId', 'scheduleId', 'templateId', 'doorId'];

function fieldOf(text: string): [string, unknown] {
  const [name, value] = pairOf(text);
  if (value === 'null') return [name, null];
  if (TEXTS.includes(name)) return [name, value];
  try {
    return [name, JSON.parse(value)];
  } catch {
    throw new CommandFailed(
      `${name}: expected a number, true, false, null or JSON, not ${value}.`,
      EXIT.usage,
    );
  }
}

function pairOf(text: string): [string, string] {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw new CommandFailed(`Expected field=value, not ${text}.`, EXIT.usage);
}
