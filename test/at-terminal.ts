/** A command of a page, typed at a terminal by a person who reads its questions. */
import { spawn, spawnSync } from 'node:child_process';
import { vi } from 'vitest';

/** `script` is of Debian's package bsdutils, which is essential. */
export const HAS_TERMINAL = spawnSync('script', ['--version']).status === 0;

export type Answers = readonly (readonly [question: RegExp, answer: string])[];

/** Each answer is typed once its question is there. Resolves when the script has ended. */
export async function atTerminal(
  { script, cwd, env }: { script: string; cwd: string; env: NodeJS.ProcessEnv },
  answers: Answers,
): Promise<{ code: number | null; output: string }> {
  const child = spawn('script', ['--quiet', '--return', '--command', 'bash -euc "$TYPED"', '/dev/null'], {
    cwd,
    env: { ...env, SHELL: '/bin/bash', TYPED: script },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  let [output, unread] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    unread += text;
  });
  const failed = ended.then((code) => Promise.reject(new Error(`it ended with ${code}: ${output}`)));
  failed.catch(() => undefined);
  for (const [question, answer] of answers) {
    const asked = vi.waitUntil(() => question.test(unread), { timeout: 60_000, interval: 20 });
    await Promise.race([asked, failed]);
    unread = '';
    child.stdin.write(`${answer}\n`);
  }
  return { code: await ended, output };
}
