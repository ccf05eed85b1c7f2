/** Anyone who corrects a configuration sees all of its faults in one run, each once and none that is not there. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { FileError } from '../yaml/yaml-file.ts';
import { parseConfig } from './config-file.ts';

/** 1: every pair, which takes minutes. */
const EACH_NTH_PAIR = Number(process.env.EACH_NTH_PAIR ?? 3);

type Step = string | number;
type Section = Record<Step, unknown>;

interface Fault {
  /** Where it is planted. */
  path: Step[];
  plant(document: Section): void;
  /** What it also depends on: where that has a mistake, this cannot be recognised as one. */
  follows: Step[][];
}

const EXAMPLE = join(import.meta.dirname, '../../../config/gatehouse.example.yaml');
const OTHER = '11111111-2222-4333-8444-555555555555';
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The example with every setting, a second gateway, and files that are there. */
function readSound(): Section {
  const text = readFileSync(EXAMPLE, 'utf8')
    .replaceAll(/^(links|networks|zgates|sinks|access): (\[\]|\{\})$/gm, '')
    .replace(/^( *)# ( *(?:- )?[a-z][A-Za-z0-9]*:(?: .*)?)$/gm, '$1$2')
    .replaceAll('/etc/gatehouse', folder);
  const document = parse(text);
  document.links.push({ id: 'zigbee-3', protocol: 'zigbee', options: { port: 'tcp://10.0.0.9:1' } });
  document.zgates.push({ deviceId: OTHER, link: 'zigbee-3', networkId: document.networks[0].id });
  return document;
}

const SOUND = readSound();
/** A copy: parsing the example takes longer than judging it, and there are more than a thousand pairs. */
const sound = () => structuredClone(SOUND);

for (const [file] of JSON.stringify(sound()).matchAll(new RegExp(`${folder}/[^"]+`, 'g')))
  writeFileSync(file, '');

const at = (document: unknown, path: Step[]): Section =>
  path.reduce((value, step) => (value as Section)[step] as Section, document as Section);

/** This value in the place of what is there; undefined: nothing. */
function set(path: Step[], value: unknown, follows: Step[][] = []): Fault {
  const plant = (document: Section) => {
    const holder = at(document, path.slice(0, -1));
    if (value === undefined) delete holder[path.at(-1) ?? ''];
    else holder[path.at(-1) ?? ''] = value;
  };
  return { path, plant, follows };
}

const gate = (index: number, name: string) => ['zgates', index, name];
const LINK_IDS = Array.from({ length: 7 }, (_, index) => ['links', index, 'id']);
const bus = (index: number, ...path: Step[]) => ['links', index, 'options', ...path];

const FAULTS: Fault[] = [
  set(['wat'], {}),
  set(['dataDirectory'], ''),
  set(['adminSocket'], `/${'x'.repeat(120)}`),
  set(['systemId'], 'lobby'),
  set(['firmwareDirectory'], 3),
  set(['http', 'listen'], 'here'),
  set(['http', 'listenn'], 'here'),
  set(['http', 'names', 0], 3),
  set(['http', 'productSegment'], 'encoder'),
  set(['http', 'certFile'], undefined, [['http', 'keyFile']]),
  set(['http', 'keyFile'], 'gone.key', [['http', 'certFile']]),
  set(['http', 'trustedProxies', 0], 'proxy'),
  set(['http', 'corsOrigins', 0], 'https://desk.example/'),
  set(['auth', 'failureBurst'], 0),
  set(['auth', 'oidc', 'issuer'], undefined),
  set(['auth', 'oidc', 'audience'], 3),
  set(['auth', 'oidc', 'caFile'], 'gone.pem', [['auth', 'oidc', 'jwksUrl']]),
  set(['auth', 'oidc', 'jwksUrl'], undefined, [['auth', 'oidc', 'caFile']]),
  set(['backup', 'recipients', 0], 'age1'),
  set(['backup', 'keep'], 0),
  set(['audit', 'retentionDays'], 1),
  set(['encoders', 'listen'], '127.0.0.1:8443', [['http', 'listen']]),
  set(['encoders', 'vendorRoots', 0], 'gone.pem'),
  set(['encoders', 'keepAlive'], '31s'),
  set(['encoders', 'broker', 'urls', 0], 'mqtt://broker.example'),
  set(['encoders', 'broker', 'keyFile'], undefined, [['encoders', 'broker', 'urls', 0]]),
  set(['encoders', 'broker', 'certfile'], 'a'),
  set(['encoders', 'broker', 'administration'], 'emqx'),
  set(['upstream', 'url'], undefined),
  set(['upstream', 'username'], undefined),
  set(['upstream', 'certFile'], undefined),
  set(['upstream', 'caFile'], 'gone.pem'),
  set(['sinks', 0, 'urls', 0], 'http://a'),
  set(['sinks', 0, 'topic'], 'a/#'),
  set(['sinks', 1, 'name'], 'campus', [['sinks', 0, 'name']]),
  set(['sinks', 1, 'signingKeyFile'], 'gone'),
  set(['sinks', 1, 'batch'], 0),
  set(['sinks', 2, 'kind'], 'kafka', [['sinks', 2, 'subject']]),
  set(['sinks', 2, 'subject'], 'a.>'),
  set(['links', 0, 'id'], 'BUS 1'),
  set(['links', 0, 'protocol'], 'modbuss', [bus(0)]),
  set(['links', 0, 'baudRate'], 9_600),
  set(bus(0, 'port'), undefined),
  set(bus(0, 'profile'), 'gone'),
  set(bus(0, 'devices', 0, 'unitId'), 300),
  set(bus(0, 'devices', 0, 'profile'), 'gone'),
  set(bus(0, 'devices', 1), { unitId: 17 }, [bus(0, 'devices', 0, 'unitId')]),
  set(['links', 1, 'id'], 'bus-1', [['links', 0, 'id']]),
  set(bus(1, 'baudRate'), 9_601),
  set(bus(1, 'devices', 0, 'address'), undefined),
  set(bus(2), undefined),
  set(
    bus(3, 'port'),
    bus(0, 'port').reduce<unknown>((value, step) => (value as Section)[step], sound()),
    [bus(0, 'port')],
  ),
  set(bus(3, 'feedback', 'granted', 'led'), 'blue'),
  set(bus(3, 'devices', 1), { address: 0 }),
  set(['links', 4, 'host'], 'A B'),
  set(['links', 7], { id: 'alone', protocol: 'zigbee', options: { port: 'tcp://10.0.0.8:1' } }, [
    gate(0, 'link'),
    gate(1, 'link'),
  ]),
  set(['networks', 0, 'id'], 'first', [gate(0, 'networkId'), gate(1, 'networkId')]),
  set(['networks', 0, 'description'], ''),
  set(gate(0, 'deviceId'), 'first'),
  set(gate(0, 'link'), 'nowhere', [...LINK_IDS]),
  set(gate(0, 'networkId'), undefined),
  set(gate(1, 'deviceId'), '0c7c2c52-1a6f-4c5e-9d3e-2b8f1f0d6a40', [gate(0, 'deviceId')]),
  set(gate(1, 'networkId'), OTHER, [['networks', 0, 'id']]),
  set(gate(1, 'nmae'), 'x'),
  set(['doors', 'lqiMin'], 300),
  set(['firmware', 'batteryMin'], -1),
  set(['log', 'level'], 'loud'),
];

/** Without the lines they refer to, which move with each fault. */
function messages(...faults: Fault[]): string[] {
  const document = sound();
  for (const { plant } of faults) plant(document);
  try {
    parseConfig(JSON.stringify(document), join(folder, 'gatehouse.yaml'), {
      checkFiles: true,
      reader: () => undefined,
    });
    return [];
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return error.mistakes.map(({ message }) => message.replace(/: see line \d+$/, '')).toSorted();
  }
}

const name = ({ path }: Fault) => path.join('.');
const overlap = (a: Step[], b: Step[]) => a.every((step, depth) => depth >= b.length || b[depth] === step);
const areIndependent = (a: Fault, b: Fault) =>
  !overlap(a.path, b.path) &&
  ![
    ...a.follows.map((path) => [path, b.path] as const),
    ...b.follows.map((path) => [path, a.path] as const),
  ].some(([one, other]) => overlap(one, other));

describe('every fault of a configuration', () => {
  const alone = new Map(FAULTS.map((fault) => [fault, messages(fault)]));

  it('is one by itself, in a configuration that has no other', () => {
    expect(messages()).toEqual([]);
    for (const [fault, found] of alone) expect(found, name(fault)).not.toEqual([]);
  });

  it.each(FAULTS.map((fault) => [name(fault), fault] as const))('is reported beside %s', (_name, first) => {
    const index = FAULTS.indexOf(first);
    const beside = FAULTS.filter((_, other) => other > index && (other - index) % EACH_NTH_PAIR === 0);
    const lost = beside.flatMap((second) => {
      const both = [...(alone.get(first) ?? []), ...(alone.get(second) ?? [])].toSorted();
      const found = messages(first, second);
      const isReported = areIndependent(first, second)
        ? JSON.stringify(found) === JSON.stringify(both)
        : found.every((message) => both.includes(message));
      return isReported ? [] : [{ beside: name(second), expected: both, found }];
    });
    expect(lost).toEqual([]);
  });
});
