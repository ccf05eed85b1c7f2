import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { siteJsonSchema, siteSchema } from './site-document.ts';
import { parseSite, readSite } from './site-file.ts';

const CONFIG = join(import.meta.dirname, '../../../config');
const EXAMPLE = join(CONFIG, 'site.example.yaml');

it('the example can be read, with what it shows as a comment too', () => {
  expect(() => readSite(EXAMPLE)).not.toThrow();
  const text = readFileSync(EXAMPLE, 'utf8').replace(/^# rs485:\n(?:# .*\n)+/m, (section) =>
    section.replaceAll(/^# /gm, ''),
  );
  expect(parseSite(text, EXAMPLE).site.rs485).toMatchObject([{ hwId: 'io-17', relayIndex: 0 }]);
});

it('the schema for editors is the one in the program (node scripts/schema.ts writes it)', () => {
  const file = JSON.parse(readFileSync(join(CONFIG, 'site.schema.json'), 'utf8'));
  expect(file).toEqual(JSON.parse(JSON.stringify(siteJsonSchema())));
});

it('an empty file is a site of which nothing is said', () => {
  expect(parseSite('', 'x').site).toEqual({ groups: [], schedules: [], templates: [], doors: [], rs485: [] });
});

it('ids and addresses are read in any case', () => {
  const { site } = parseSite(
    'doors: [{ id: 6F1C2A9E-58D4-4A39-9D41-0C5F7A1F3B2D, mac: 00124B0001A2B3C4 }]',
    'x',
  );
  expect(site.doors).toEqual([{ id: '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d', mac: '00124b0001a2b3c4' }]);
});

it('what was read is understood again as it is sent to the daemon', () => {
  const { site } = readSite(EXAMPLE);
  expect(siteSchema.parse(JSON.parse(JSON.stringify(site)))).toEqual(site);
});

it('several circles are reported once each, however they are entered', () => {
  const id = fc.integer({ min: 0, max: 6 }).map(String);
  fc.assert(
    fc.property(
      fc.uniqueArray(id, { minLength: 1 }),
      fc.array(id, { minLength: 7, maxLength: 7 }),
      (ids, up) => {
        const templates = ids.map((one, index) => ({ id: one, extends: up[index] }));
        const parent = new Map(templates.map((entry) => [entry.id, entry.extends]));
        const circles = new Set(
          ids.flatMap((start) => {
            const walked: string[] = [];
            let at: string | undefined = start;
            while (at !== undefined && !walked.includes(at)) {
              walked.push(at);
              at = parent.get(at);
            }
            return at === start ? [walked.toSorted().join()] : [];
          }),
        );
        const circles_ = parseSite(JSON.stringify({ templates }), 'x').contradictions;
        expect(circles_).toHaveLength(circles.size);
      },
    ),
  );
});

it('a file in one long line is refused before it is parsed, with what to do', () => {
  const doors = Array.from({ length: 5_000 }, (_, index) => ({ id: `door-${index}`, name: `Room ${index}` }));
  const message =
    /^x:2:1: a line has more than 65536 characters: write each entry of a list on a line of its own/;
  expect(() => parseSite(`# made by a program\n${JSON.stringify({ doors })}`, 'x')).toThrow(message);
});
