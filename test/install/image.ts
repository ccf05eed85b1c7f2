/** Disks with a freshly installed Debian, made of Debian's packages alone. */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

export const SUITES = ['bookworm', 'trixie'] as const;
export type Suite = (typeof SUITES)[number];

/** What a site's Debian has: the kernel with its drivers of USB adapters among it. */
const PACKAGES =
  'systemd,systemd-sysv,dbus,udev,iproute2,kmod,procps,linux-image-amd64,initramfs-tools,zstd,curl';
const SIZE = '3G';
/** Commands come over a serial port (user-mode Linux) or a port of qemu; a shell that starts before the port is there ends. */
const SHELL_UNIT = `[Unit]
ConditionVirtualization=!container
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'p=/dev/virtio-ports/test; [ -e $p ] || p=/dev/ttyS1; exec <>$p 1>&0 2>/dev/null; stty raw -echo; exec /bin/sh'
Restart=always
RestartSec=300ms
[Install]
WantedBy=multi-user.target
`;
/** Of the machine, and of this host as it sees it. */
export const [ADDRESS, NEIGHBOUR] = ['10.0.2.15', '10.0.2.2'];
const NETWORK = `[Match]
Type=ether
[Network]
Address=${ADDRESS}/24
`;

export interface Disk {
  kernel: string;
  initrd: string;
  /** Never written to: each machine has an overlay of its own. */
  image: string;
  /** The same files, as tar has them. */
  archive: string;
}

/** Made once a suite, in `cache`; remove the folder for newer packages of Debian. Needs root and mmdebstrap. */
export function debianDisk(suite: Suite, cache: string): Disk {
  const folder = join(cache, suite);
  const disk = (): Disk => ({
    kernel: join(folder, 'vmlinuz'),
    initrd: join(folder, 'initrd.img'),
    image: join(folder, 'disk.img'),
    archive: join(folder, 'disk.tar'),
  });
  if (existsSync(folder)) return disk();
  mkdirSync(cache, { recursive: true });
  const draft = mkdtempSync(join(cache, '.draft-'));
  const root = join(draft, 'root');
  try {
    const options = ['--variant=minbase', `--include=${PACKAGES}`, suite, `${draft}/root.tar`];
    execFileSync('mmdebstrap', options, { stdio: ['ignore', 'ignore', 'pipe'] });
    mkdirSync(root);
    execFileSync('tar', ['--extract', `--file=${draft}/root.tar`, `--directory=${root}`]);
    rmSync(`${draft}/root.tar`);
    furnish(root);
    const boot = join(root, 'boot');
    for (const name of ['vmlinuz', 'initrd.img']) {
      const found = readdirSync(boot).find((file) => file.startsWith(`${name}-`));
      if (found === undefined) throw new Error(`${suite} has no ${name}`);
      copyFileSync(join(boot, found), join(draft, name));
    }
    execFileSync('truncate', ['--size', SIZE, `${draft}/disk.img`]);
    execFileSync('mkfs.ext4', ['-q', '-d', root, `${draft}/disk.img`]);
    execFileSync('tar', ['--create', `--file=${draft}/disk.tar`, `--directory=${root}`, '.']);
    rmSync(root, { recursive: true });
    renameSync(draft, folder);
    return disk();
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** What the test needs to be in the machine: a shell, a network, a name. */
function furnish(root: string): void {
  const system = join(root, 'etc/systemd/system');
  const wants = join(system, 'multi-user.target.wants');
  mkdirSync(wants, { recursive: true });
  writeFileSync(join(system, 'test-shell.service'), SHELL_UNIT);
  writeFileSync(join(root, 'etc/systemd/network/ether.network'), NETWORK);
  writeFileSync(join(root, 'etc/hostname'), 'controller\n');
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost controller\n');
  symlinkSync('../test-shell.service', join(wants, 'test-shell.service'));
  symlinkSync('/lib/systemd/system/systemd-networkd.service', join(wants, 'systemd-networkd.service'));
  symlinkSync('/lib/systemd/system/multi-user.target', join(system, 'default.target'));
  // They wake while something is measured.
  for (const unit of ['apt-daily.timer', 'apt-daily-upgrade.timer', 'e2scrub_all.timer', 'fstrim.timer'])
    symlinkSync('/dev/null', join(system, unit));
}
