/**
 * A machine of docs/operations.md in a folder of its own. What a test cannot do of the page is in STAND_INS, FUNCTIONS and SYSTEMCTL;
 * nothing else of a block is changed.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { NATS_SERVER } from './services/events/nats.ts';
import { temporaryFolder } from './temporary.ts';

export type StandIn = readonly [what: string | RegExp, by: string];

const STAND_INS: readonly StandIn[] = [
  // The default of dataDirectory is not in the folder.
  ['adminSocket: /run/', 'dataDirectory: ../../var/lib/gatehouse\nadminSocket: ../../run/'],
  // All machines have one address, and the ports of this one are not free.
  [/\b0\.0\.0\.0:(8443|8883)\b/g, '127.0.0.1:0'],
  // A configuration that an archive takes to another machine is in another folder there.
  [/(?<=: |\[)\/etc\/gatehouse\//g, ''],
  // Users and groups that packages make.
  [/(?: -o \w+)? -g (gatehouse|nats)(?= )/g, ''],
  ['chgrp gatehouse', 'test -e'],
  [/(?<![\w.])\/(etc|media|run|var\/lib)\//g, '$ROOT/$1/'],
];

const FUNCTIONS = [
  'sudo() { "$@"; }',
  // Its program is there.
  'apt-get() { [ "$*" = "install nats-server" ]; }',
  // Whether this machine has a time server is not what the page is about.
  'gatehouse() { "$NODE" "$START" "$@" || [ "$1" = doctor ]; }',
];

/**
 * Does what systemd does with the units of Gatehouse, NATS and mosquitto, and with those of the page. One that ends before it was
 * ready is not started again.
 */
const SYSTEMCTL = `#!/bin/bash
set -eu
verb=$1
[ "\${2-}" != --now ] || shift
unit=$2
pid="$ROOT/$unit.pid" log="$ROOT/$unit.log"
case $unit in
  gatehouse) program=("$NODE" "$START" serve) ready='"(ready at|standby:) ' ;;
  nats-server) program=(${NATS_SERVER} -c "$ROOT/etc/nats-server.conf") ready='Server is ready' ;;
  mosquitto) program=(mosquitto -c "$ROOT/etc/mosquitto/mosquitto.conf") ready='mosquitto version .* running' ;;
  *.path) program=("$0" watch "$unit") ready=watching ;;
  *)
    [ "$verb" = start ]
    sed -n 's/^ExecStart=//p' "$ROOT/etc/systemd/system/$unit.service" | while read -r line; do eval "$line"; done
    exit 0 ;;
esac
case $verb in
  watch)
    # systemd.path(5) does it by inotify.
    file=$(sed -n 's/^PathChanged=//p' "$ROOT/etc/systemd/system/$unit")
    found() { stat -c '%i %z' "$file" 2>/dev/null || true; }
    before=$(found)
    echo watching
    while sleep 0.1; do
      now=$(found)
      [ "$now" = "$before" ] || "$0" start "\${unit%.path}"
      before=$now
    done ;;
  keep)
    code=1
    while [ $code = 1 ] && [ ! -e "$pid.stop" ]; do
      "\${program[@]}" >>"$log" 2>&1 3>&- &
      echo $! >"$pid"
      code=0
      wait $! || code=$?
      rm "$pid"
      grep -Eq "$ready" "$log" || break
    done
    touch "$pid.ended" ;;
  enable | start)
    [ "$*" != 'enable gatehouse' ] || exit 0
    [ ! -e "$log" ] || [ -e "$pid.ended" ] || exit 0
    rm -f "$pid.ended" "$pid.stop"
    : >"$log"
    # In a session of its own: the end of a terminal would end it.
    setsid "$0" keep "$unit" >/dev/null 2>&1 3>&- &
    until grep -Eq "$ready" "$log"; do [ ! -e "$pid.ended" ]; sleep 0.1; done ;;
  stop)
    [ -e "$log" ] || exit 0
    touch "$pid.stop"
    asked=
    until [ -e "$pid.ended" ]; do
      now=$(cat "$pid" 2>/dev/null || true)
      [ "$now" = "$asked" ] || kill "$now" 2>/dev/null || true
      asked=$now
      sleep 0.1
    done ;;
  restart) "$0" stop "$unit" && "$0" start "$unit" ;;
  reload) "$NODE" "$START" reload ;;
  try-reload-or-restart) [ ! -e "$pid" ] || kill -HUP "$(cat "$pid")" ;;
  *) exit 1 ;;
esac
`;

export interface Machine {
  readonly folder: string;
  /** Where its commands are typed. */
  readonly home: string;
  readonly config: string;
  /** What of the page is another here. */
  here(text: string): string;
  typing(block: string): { script: string; cwd: string; env: NodeJS.ProcessEnv };
  /** What its commands have printed. */
  typed(block: string): Promise<string>;
}

/** `further` come before the others. What it has started is stopped when the test ends. */
export function openMachine(further: readonly StandIn[] = []): Machine {
  const folder = temporaryFolder();
  const path = (name: string) => join(folder, name);
  for (const name of ['bin', 'home', 'etc/gatehouse', 'run/gatehouse', 'var/lib', 'media/stick'])
    mkdirSync(path(name), { recursive: true });
  writeFileSync(path('bin/systemctl'), SYSTEMCTL);
  chmodSync(path('bin/systemctl'), 0o755);
  const config = path('etc/gatehouse/gatehouse.yaml');
  const env = {
    ...process.env,
    PATH: `${path('bin')}:${process.env.PATH}`,
    GATEHOUSE_CONFIG: config,
    ROOT: folder,
    NODE: process.execPath,
    START: join(import.meta.dirname, '../src/start.js'),
  };
  const here = (block: string) =>
    [...further, ...STAND_INS]
      .reduce((text, [what, by]) => text.replaceAll(what, by), block)
      .replaceAll('$ROOT', folder);
  const typing = (block: string) => ({
    script: [...FUNCTIONS, here(block)].join('\n'),
    cwd: path('home'),
    env,
  });
  const typed = async (block: string) => {
    const { script, ...options } = typing(block);
    return (await promisify(execFile)('bash', ['-euc', script], options)).stdout;
  };
  onTestFinished(async () => {
    for (const unit of ['encoders-crl.path', 'gatehouse', 'mosquitto', 'nats-server'])
      await typed(`systemctl stop ${unit}`);
  });
  return { folder, home: path('home'), config, here, typing, typed };
}
