/** Runs an image of `npm run package -- --oci`, as a container engine does, by what util-linux has. Needs root. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}
export interface ImageConfig {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  Volumes: Record<string, object>;
  Healthcheck: { Test: string[] };
}

export interface RunningImage extends Disposable {
  process: ChildProcess;
  config: ImageConfig;
  /** What it has written. */
  log(): string;
  /** Runs a command beside it, as it is run. */
  exec(...argv: string[]): { status: number | null; output: string };
  stop(): void;
}

/** The root is read-only; $1 is the folder with it and the volumes, the user follows, then the command. */
const RUN = `
cd "$1"
mount --bind root root
mount -o remount,bind,ro root
mount -t proc proc root/proc
mount -t tmpfs tmpfs root/tmp
mount -t tmpfs tmpfs root/dev
for device in null urandom; do touch root/dev/$device; mount --bind /dev/$device root/dev/$device; done
mount --bind etc root/etc/gatehouse
mount -o remount,bind,ro root/etc/gatehouse
for volume in volumes/*; do mount --bind "$volume" "root/$(echo "\${volume#volumes/}" | tr + /)"; done
user=$2
shift 2
exec setpriv --no-new-privs chroot --userspec="$user" root "$@"`;

/** `configuration`: the text of gatehouse.yaml. */
export function runImage(archive: string, folder: string, configuration: string): RunningImage {
  const layout = join(folder, 'layout');
  const root = join(folder, 'root');
  for (const path of [layout, root, join(folder, 'etc')]) mkdirSync(path, { recursive: true });
  execFileSync('tar', ['--extract', `--file=${archive}`, `--directory=${layout}`]);
  const blob = ({ digest, size }: Descriptor) => {
    const file = join(layout, 'blobs', digest.replace(':', '/'));
    const bytes = readFileSync(file);
    const found = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    if (found !== digest || bytes.length !== size) throw new Error(`${file} is not ${digest}`);
    return { file, json: () => JSON.parse(bytes.toString()) };
  };
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
  const manifest = blob(index.manifests[0]).json();
  const { config } = blob(manifest.config).json() as { config: ImageConfig };
  for (const layer of manifest.layers)
    execFileSync('tar', ['-xzf', blob(layer).file, '-C', root, '--same-owner', '--numeric-owner']);
  writeFileSync(join(folder, 'etc/gatehouse.yaml'), configuration);
  const [user = 0, group = 0] = config.User.split(':').map(Number);
  for (const volume of Object.keys(config.Volumes)) {
    const path = join(folder, 'volumes', volume.slice(1).replaceAll('/', '+'));
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chownSync(path, user, group);
  }
  const env = Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/s)));
  const outside = { ...env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
  const spaces = ['--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child'];
  const command = ['sh', '-euc', RUN, 'sh', folder, config.User, ...config.Entrypoint, ...config.Cmd];
  const process = spawn('unshare', [...spaces, ...command], {
    env: outside,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [process.stdout, process.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (log += text));
  const first = () => readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim();
  return {
    process,
    config,
    log: () => log,
    exec(...argv) {
      const into = ['--target', first(), '--mount', '--pid', '--root', '--wd=/'];
      const as = [`--setuid=${user}`, `--setgid=${group}`];
      const { status, stdout, stderr } = spawnSync('nsenter', [...into, ...as, ...argv], { env: outside });
      return { status, output: `${stdout}${stderr}` };
    },
    stop: () => void spawnSync('kill', ['-TERM', first()]),
    [Symbol.dispose]: () => void process.kill('SIGKILL'),
  };
}
