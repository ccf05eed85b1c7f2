/** What the demo shows. On a terminal the lines of the keys are redrawn in place; elsewhere every step is a line. */
import { stripVTControlCharacters, styleText } from 'node:util';
import type { CloudEvent } from '../../test/simulators/upstream.ts';

export interface Key {
  keyId: string;
  label: string;
}

export interface Screen {
  /** A step that is done. */
  done(what: string, detail?: string): void;
  /** Lines as they are. */
  print(text: string): void;
  fail(message: string): void;
  /** What is being done, until disposal. */
  working(what: string): Disposable;
  /** Follows these keys until disposal; `event` moves them. */
  follow(keys: Key[]): Disposable;
  event(event: CloudEvent): void;
}

type Format = Parameters<typeof styleText>[0];

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 80;

/** In the order they come: what the person at the desk sees, and how much of the bar is full. */
const STEPS: Record<string, { text: string; full: number; format: Format }> = {
  queued: { text: 'waiting', full: 0, format: 'dim' },
  started: { text: 'started', full: 1, format: 'cyan' },
  cardRequested: { text: 'put a card on the encoder', full: 2, format: 'yellow' },
  cardDetected: { text: 'card detected', full: 3, format: 'cyan' },
  writing: { text: 'writing', full: 4, format: 'cyan' },
  written: { text: 'written', full: 5, format: 'green' },
  failed: { text: 'failed', full: 5, format: 'red' },
  cancelled: { text: 'cancelled', full: 5, format: 'magenta' },
  expired: { text: 'expired', full: 5, format: 'red' },
  unknown: { text: 'unknown: read the card before it is used', full: 5, format: 'red' },
};
const ENDS = new Set(['written', 'failed', 'cancelled', 'expired', 'unknown']);

export function openScreen(output: NodeJS.WriteStream): Screen {
  const live = output.isTTY === true;
  const style = (format: Format, text: string) => styleText(format, text, { stream: output });
  const status = new Map<string, string>();
  let followed: Key[] = [];
  let work: string | undefined;
  let frame = 0;
  let drawn = 0;
  const spinner = () => FRAMES[frame % FRAMES.length] ?? '';

  function line({ keyId, label }: Key): string {
    const now = status.get(keyId) ?? 'queued';
    const { text, full, format } = STEPS[now] ?? { text: now, full: 0, format: 'dim' as const };
    const mark = now === 'written' ? '✔' : ENDS.has(now) ? '✘' : spinner();
    const bar = '━'.repeat(full * 4) + style('dim', '─'.repeat((5 - full) * 4));
    return `  ${style(format, mark)} ${label}  ${style(format, bar)}  ${style(format, text)}`;
  }
  /** Takes the live lines away, so that something else can be written above them. */
  function wipe(): void {
    if (drawn > 0) output.write(`\u001b[${drawn}A\u001b[J`);
    drawn = 0;
  }
  function draw(): void {
    wipe();
    const lines = [
      ...followed.map(line),
      ...(work === undefined ? [] : [`${style('cyan', spinner())} ${work}`]),
    ];
    output.write(lines.map((text) => `${text}\n`).join(''));
    // A narrow terminal shows one line in several rows.
    const rows = (text: string) => Math.ceil(stripVTControlCharacters(text).length / (output.columns || 80));
    drawn = lines.reduce((sum, text) => sum + rows(text), 0);
  }
  function print(text: string): void {
    wipe();
    output.write(`${text}\n`);
    if (live) draw();
  }
  /** Draws the lines again and again, until disposal. */
  function moving(): Disposable {
    const timer = setInterval(() => {
      frame += 1;
      draw();
    }, FRAME_MS);
    draw();
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }

  return {
    done: (what, detail) =>
      print(`${style('green', '✔')} ${what}${detail ? `  ${style('dim', detail)}` : ''}`),
    print,
    fail: (message) => print(`${style('red', '✘')} ${message}`),
    working(what) {
      if (!live) print(what);
      work = what;
      const movement = live ? moving() : undefined;
      return {
        [Symbol.dispose]() {
          movement?.[Symbol.dispose]();
          work = undefined;
          wipe();
        },
      };
    },
    follow(keys) {
      followed = keys;
      const movement = live ? moving() : undefined;
      return {
        [Symbol.dispose]() {
          movement?.[Symbol.dispose]();
          if (live) draw();
          followed = [];
          drawn = 0;
        },
      };
    },
    event({ data }) {
      status.set(data.keyId, data.status);
      const key = followed.find(({ keyId }) => keyId === data.keyId);
      if (live && key) draw();
      else {
        const { text, format } = STEPS[data.status] ?? { text: data.status, format: 'dim' as const };
        const name = key?.label ?? `${data.requestId} ${data.keyId}`;
        print(`  ${style('dim', 'event')}  ${name}  ${style(format, text)}`);
      }
    },
  };
}
