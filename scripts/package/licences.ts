/** Which libraries are in a package, for its copyright file and its bill of materials. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLicensed } from '../conventions/licences.ts';
import { lockedPackages, Refused } from './architecture.ts';

/** A package of npm's that is in the package, whole or in part. */
export interface Library {
  name: string;
  version: string;
  licence: string;
  /** Base64, with the name of the algorithm: as in package-lock.json. */
  integrity?: string;
  /** Where it lies here, from the root. */
  folder: string;
}

/**
 * Those that the source maps in `dist`, which build.ts made, name, and those of `placed` files. All have a licence that may be
 * delivered.
 */
export function librariesIn(root: string, dist: string, placed: readonly string[]): Library[] {
  const locked = lockedPackages(root);
  const bundles = ['main', 'host', 'simulate', 'console/assets'].map((name) => join(dist, name));
  const sources = bundles.flatMap(sourcesOf);
  const folders = new Set([...sources, ...placed].map(folderOf).filter((folder) => folder !== undefined));
  return [...folders].toSorted().map((folder) => {
    const entry = locked[folder];
    if (entry === undefined || entry.link === true)
      throw new Refused(`${folder} is in the bundle, and not in package-lock.json`);
    const { version, license = 'none', integrity } = entry;
    if (!isLicensed(license)) throw new Refused(`${folder} is in the bundle; its licence is ${license}`);
    const name = folder.replace(/^.*node_modules\//, '');
    return { name, version, licence: license, folder, ...(integrity !== undefined && { integrity }) };
  });
}

function sourcesOf(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.map'))
    .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).sources as string[]);
}

/** node_modules/a/node_modules/@b/c of ../../node_modules/a/node_modules/@b/c/index.js. */
function folderOf(path: string): string | undefined {
  return /node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0];
}

/** Each with the text of its licence. */
export function copyrightOf(root: string, libraries: readonly Library[], nodeLicence: string): string {
  const line = '-'.repeat(100);
  const parts = libraries.map(({ name, version, licence, folder }) => {
    const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file
      ? readFileSync(join(root, folder, file), 'utf8')
      : authorOf(join(root, folder), licence);
    return `${name} ${version}: ${licence}\n\n${text.trim()}\n`;
  });
  return [
    `Gatehouse\n\n${readFileSync(join(root, 'LICENSE'), 'utf8').trim()}\n\nIn this package are also the programs and libraries below, each under its own licence.\n`,
    ...parts,
    `Node.js, with what is in it\n\n${nodeLicence.trim()}\n`,
  ].join(`\n${line}\n`);
}

/** Where a library brings no file with its licence. */
function authorOf(folder: string, licence: string): string {
  const { author = 'its contributors' } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const name = typeof author === 'string' ? author : author.name;
  return `Copyright ${name}. Its package.json says: ${licence}. It comes without a text of that licence.`;
}

/** CycloneDX 1.6, as JSON. */
export function billOfMaterials(
  libraries: readonly Library[],
  version: string,
  node: { name: string; version: string; integrity?: string },
  seconds: number,
): string {
  const runtime = { ...node, licence: 'MIT', folder: '' };
  const components = [runtime, ...libraries].map(({ name, version, licence, integrity }) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return {
      type: 'library',
      'bom-ref': purl,
      name,
      version,
      purl,
      licenses: [{ expression: licence }],
      ...(integrity !== undefined && { hashes: [{ alg: 'SHA-512', content: hexOf(integrity) }] }),
    };
  });
  // One library may be in two folders.
  const once = [...new Map(components.map((component) => [component.purl, component])).values()];
  const ref = `pkg:generic/gatehouse@${version}`;
  const draft = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: new Date(seconds * 1_000).toISOString(),
      component: { type: 'application', 'bom-ref': ref, name: 'gatehouse', version },
    },
    components: once,
    dependencies: [{ ref, dependsOn: once.map(({ purl }) => purl) }],
  };
  return `${JSON.stringify({ ...draft, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(draft))}` }, null, 2)}\n`;
}

function hexOf(integrity: string): string {
  return Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
}

/** A UUID of version 8 (RFC 9562): the same for the same text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5');
}

/** Folders under node_modules in which a bundle looks for files while it runs. */
export function foldersAskedFor(dist: string): string[] {
  const asked = ['main', 'host', 'simulate'].flatMap((program) => {
    const folder = join(dist, program);
    const bundles = readdirSync(folder).filter((name) => name.endsWith('.js'));
    return bundles.flatMap((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      return [...text.matchAll(/import\.meta\.dirname \+ "\/\.\.\/\.\.\/(node_modules\/[^"]+)"/g)].map(
        ([, path = '']) => folderOf(`${path}/`) ?? path,
      );
    });
  });
  return [...new Set(asked)];
}
