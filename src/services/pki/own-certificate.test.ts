import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { hasOpenssl, type Minted, openOpenssl } from '../../../test/services/pki/openssl.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { runUntilTestEnds } from '../../../test/until-test-ends.ts';
import { type Log, silentLog } from '../../platform/log.ts';
import type { LiveEvent } from '../events/cloud-event.ts';
import { openOwnCertificate } from './own-certificate.ts';

const openssl = openOpenssl();
afterAll(() => openssl[Symbol.dispose]());
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let clock: ManualClock;
let files: { certFile: string; keyFile: string };
let events: LiveEvent[];
let lines: string[];
beforeEach(() => {
  clock = manualClock(Date.parse('2026-01-01T00:00:00Z'));
  const folder = temporaryFolder();
  files = { certFile: `${folder}/site.pem`, keyFile: `${folder}/site.key` };
  events = [];
  lines = [];
});

const mint = (to = '20270101000000Z') =>
  openssl.mint({ extensions: ['subjectAltName=DNS:gate.example'], from: '20250101000000Z', to });
const keyOf = ({ keyFile }: Minted) => readFileSync(keyFile, 'utf8');
function place(minted: Minted, key = minted): void {
  // A pipe in its place would hold the writer up, too.
  rmSync(files.keyFile, { force: true });
  writeFileSync(files.certFile, minted.pem);
  writeFileSync(files.keyFile, keyOf(key));
}

function open() {
  const note = (fields: object, message?: string) => void lines.push(`${JSON.stringify(fields)} ${message}`);
  const own = openOwnCertificate({
    files,
    clock,
    time: clock,
    log: { ...silentLog, info: note, warn: note, error: note } as Log,
    events: { publish: (event) => void events.push(event), wake() {} },
    commit: async (write) => write(),
  });
  runUntilTestEnds(own.keep);
  return own;
}
const shown = (own: ReturnType<typeof open>) => own.identityFor('gate.example')?.chain;

describe.skipIf(!hasOpenssl)("the site's own certificate", () => {
  it('is shown to clients that name it, and followed when its files change', async () => {
    const [one, other] = [mint(), mint()];
    place(one);
    const own = open();
    expect(shown(own)).toBe(one.pem);
    expect(own.identityFor('other.example')).toBe(undefined);
    expect(own.state()).toMatchObject({ notAfter: Date.parse('2027-01-01'), error: null });
    place(other);
    expect(shown(own)).toBe(one.pem);
    await clock.advance(MINUTE_MS);
    expect(shown(own)).toBe(other.pem);
    place(one);
    own.look();
    expect(shown(own)).toBe(one.pem);
    expect(lines.join('\n')).not.toContain('PRIVATE KEY');
  });

  it.each<[string, RegExp, (one: Minted) => void]>([
    ['of which the key is not there yet', /site\.key is not the key/, (one) => place(mint(), one)],
    ['that is gone', /site\.pem cannot be read \(ENOENT\)/, () => rmSync(files.certFile)],
    ['of which the key is gone', /site\.key cannot be read \(ENOENT\)/, () => rmSync(files.keyFile)],
    [
      'in the place of which is a pipe',
      /site\.key is a pipe, not a file/,
      () => {
        rmSync(files.keyFile);
        execFileSync('mkfifo', [files.keyFile]);
      },
    ],
    ['that has expired', /site\.pem expired on 2025-06-01/, () => place(mint('20250601000000Z'))],
    [
      'that is cut short',
      /site\.pem holds no certificate/,
      () => writeFileSync(files.certFile, '-----BEGIN'),
    ],
  ])(
    '%s leaves the last good one in force, with one line in the log, until it is mended',
    async (_what, fault, harm) => {
      const one = mint();
      place(one);
      const own = open();
      harm(one);
      await clock.advance(3 * MINUTE_MS);
      expect(shown(own)).toBe(one.pem);
      expect(own.state().error).toMatch(fault);
      expect(lines.filter((line) => fault.test(line))).toHaveLength(1);
      const other = mint();
      place(other);
      await clock.advance(MINUTE_MS);
      expect(shown(own)).toBe(other.pem);
      expect(own.state().error).toBe(null);
    },
  );

  it("is the site CA's at a start without a pair that can be used, and its own once there is one", async () => {
    const own = open();
    expect(shown(own)).toBe(undefined);
    expect(own.state()).toMatchObject({ notAfter: null, error: expect.stringMatching(/ENOENT/) });
    place(mint());
    await clock.advance(MINUTE_MS);
    expect(shown(own)).toBeDefined();
  });

  it('is used at a start when only its dates are wrong: the clock may be', async () => {
    const expired = mint('20250601000000Z');
    place(expired);
    const own = open();
    expect(shown(own)).toBe(expired.pem);
    expect(own.state().error).toMatch(/^in force all the same, .* expired/);
    await clock.advance(2 * MINUTE_MS);
    expect(own.state().error).toMatch(/^in force/);
    const other = mint('20250601000000Z');
    place(other);
    await clock.advance(MINUTE_MS);
    expect(shown(own)).toBe(expired.pem);
    expect(own.state().error).toMatch(/^not taken: .* expired/);
  });

  it('is warned of 30, 7 and 1 days before its end and at it, once each, and no more once it is renewed', async () => {
    place(mint('20260301000000Z'));
    open();
    const days: number[] = [];
    for (let day = 0; day < 61; day += 1) {
      clock.jumpWall(DAY_MS);
      await clock.advance(MINUTE_MS);
      for (const { type, data } of events.splice(0)) {
        expect(type).toBe('gatehouse.certificate.expiry.v1');
        days.push(data.daysLeft as number);
      }
    }
    expect(days).toEqual([29, 6, 0, -1]);
    place(mint('20280101000000Z'));
    await clock.advance(2 * MINUTE_MS);
    expect(events).toEqual([]);
  });
});
