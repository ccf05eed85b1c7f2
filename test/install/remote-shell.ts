/** A root shell of a machine, at the other end of a wire. */
import { randomUUID } from 'node:crypto';
import type { Duplex } from 'node:stream';

export const BOOT_TIMEOUT_MS = 600_000;
const RUN_TIMEOUT_MS = 300_000;
/** Shorter than what a terminal holds. */
const LONGEST_LINE = 2_000;

export interface Question {
  /** Of the machine. */
  name: string;
  shell: Duplex;
  script: string;
  timeoutMs: number | undefined;
}

/** The output of a script. Throws, with the output, where it fails. */
export async function askShell({
  name,
  shell,
  script,
  timeoutMs = RUN_TIMEOUT_MS,
}: Question): Promise<string> {
  const end = randomUUID();
  const received: Buffer[] = [];
  const answer = Promise.withResolvers<string>();
  const onData = (chunk: Buffer) => {
    received.push(chunk);
    if (chunk.includes('\n')) {
      const found = new RegExp(`@${end} (\\S*) (\\d+)\n`).exec(Buffer.concat(received).toString());
      if (found) answer.resolve(`${found[2]} ${found[1]}`);
    }
  };
  const onClose = () => answer.reject(new Error(`${name} went off during ${script}`));
  const timeout = setTimeout(
    () => answer.reject(new Error(`${name} has not ended within ${timeoutMs / 1_000} s: ${script}`)),
    timeoutMs,
  );
  shell.on('data', onData).on('close', onClose);
  try {
    const coded = Buffer.from(script).toString('base64');
    shell.write('f=$(mktemp)\n');
    for (let at = 0; at < coded.length; at += LONGEST_LINE)
      shell.write(`printf %s ${coded.slice(at, at + LONGEST_LINE)} >>$f\n`);
    shell.write(
      `base64 -d $f >$f.sh; sh -eu $f.sh >$f.out 2>&1 </dev/null; c=$?; printf '@%s %s %d\\n' ${end} "$(base64 -w0 $f.out)" $c; rm -f $f*\n`,
    );
    const [code, output = ''] = (await answer.promise).split(' ');
    const text = Buffer.from(output, 'base64').toString();
    if (code !== '0') throw new Error(`${name}: ${script}\nended with ${code}:\n${text}`);
    return text;
  } finally {
    clearTimeout(timeout);
    shell.off('data', onData).off('close', onClose);
  }
}
