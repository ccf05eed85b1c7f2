/**
 * Reads events of Gatehouse, one CloudEvent in JSON on each line of its input, and writes each that is new to its output:
 *
 *   mosquitto_sub -h broker -q 1 -i my-consumer -c -t 'gatehouse/1/#' -F %p | node consumer.js state.jsonl
 *
 * A repeat is left out: an event is known by (source, id). `sequence` counts the events of an encoder without a hole; a hole is
 * missing until a gap record explains it. What was seen is in the state file, on the disk before the event is written out.
 * At the end of the input it says on stderr what is missing, and ends with 1 if anything is.
 */
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  truncateSync,
} from 'node:fs';
import { createInterface } from 'node:readline';

const GAP = 'gatehouse.events.gap.v1';
const [, , file] = process.argv;
if (!file) throw new Error('usage: node consumer.js STATE_FILE');

const seen = new Set();
/** By source: the highest sequence, and those below it that are missing. */
const encoders = new Map();
let duplicates = 0;

/** @param {any} event */
function note({ source, id, type, sequence, sequencefrom = 0, data }) {
  seen.add(`${source} ${id}`);
  if (type === GAP) {
    const { newest, missing } = encoderOf(`${source}/encoders/${data.encoderId}`);
    for (let n = data.firstSequence; n <= data.lastSequence; n += 1) missing.delete(n);
    // Of what is not seen yet: it will not come.
    if (newest.sequence !== 0 && newest.sequence + 1 >= data.firstSequence)
      newest.sequence = Math.max(newest.sequence, data.lastSequence);
  } else if (sequence != null) {
    const { newest, missing } = encoderOf(source);
    const n = Number(sequence);
    // The first one seen is where this consumer begins; after a restore or a takeover the gateway goes on at `sequencefrom`.
    const first = Math.max(newest.sequence + 1, Number(sequencefrom));
    if (newest.sequence !== 0) for (let hole = first; hole < n; hole += 1) missing.add(hole);
    missing.delete(n);
    newest.sequence = Math.max(newest.sequence, n);
  }
}

/** @param {string} source */
function encoderOf(source) {
  const known = encoders.get(source) ?? { newest: { sequence: 0 }, missing: new Set() };
  encoders.set(source, known);
  return known;
}

if (existsSync(file)) {
  // A last line that was cut short by a crash was never written out.
  const text = readFileSync(file, 'utf8');
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  truncateSync(file, Buffer.byteLength(whole));
  const lines = whole.split('\n').slice(0, -1);
  for (const line of lines) note(JSON.parse(line));
}
const state = openSync(file, 'a');
for await (const line of createInterface({ input: process.stdin })) {
  const event = JSON.parse(line);
  if (seen.has(`${event.source} ${event.id}`)) {
    duplicates += 1;
    continue;
  }
  const { source, id, type, sequence = null, sequencefrom, data } = event;
  const kept = { source, id, type, sequence, sequencefrom, ...(type === GAP && { data }) };
  appendFileSync(state, `${JSON.stringify(kept)}\n`);
  fsyncSync(state);
  note(event);
  process.stdout.write(`${line}\n`);
}
closeSync(state);
const missing = [...encoders]
  .filter(([, known]) => known.missing.size > 0)
  .map(([source, known]) => ({ source, sequences: [...known.missing].sort((a, b) => a - b) }));
process.stderr.write(`${JSON.stringify({ events: seen.size, duplicates, missing })}\n`);
process.exitCode = missing.length > 0 ? 1 : 0;
