/** The export of a site, through the text of a file, against the import. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { z } from 'zod';
import { openDoorSite } from '../../../test/door-site.ts';
import { everythingOn } from '../../../test/resources/site-import/testbed.ts';
import { send } from '../../../test/things-app.ts';
import { yamlText } from '../../platform/yaml/yaml-file.ts';
import { siteSchema } from './site-document.ts';
import { parseSite } from './site-file.ts';

type Document = z.input<typeof siteSchema>;

const RUNS = 12;
/** What YAML could read as something else, beside anything. */
const odd = fc.constantFrom(
  'null',
  '~',
  '0x10',
  '08:30',
  'yes',
  '- a',
  '"',
  "'",
  '#',
  'a: b',
  '1e3',
  '\ufeffx',
  '💳',
);
const text = fc.oneof(odd, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }));
const id = fc.oneof(odd, fc.constantFrom('a', 'b', 'c'));
const or = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const time = fc.nat(1_439).map((minute) => {
  const two = (part: number) => String(part).padStart(2, '0');
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
});
const days = fc.uniqueArray(fc.constantFrom('mon', 'wed', 'sun'), { minLength: 1 });
const bits = { onlineEnabled: or(fc.boolean()), standOpenAllowed: or(fc.boolean()), type: or(id) };
const keys = fc.array(fc.record({ id, type: or(id) }), { maxLength: 2 });
const interval = fc.record({ start: fc.nat(1_439), end: fc.nat(1_440) });
const hex = fc.stringMatching(/^[1-9a-e]{16}$/);

const sites = fc.record(
  {
    systemConfigVersion: fc.integer({ min: 1, max: 9 }),
    groups: fc.uniqueArray(fc.record({ id, name: text }), { selector: (one) => one.id, maxLength: 3 }),
    schedules: fc.uniqueArray(
      fc.record(
        {
          id,
          version: fc.integer({ min: 1, max: 99 }),
          intervals: fc.array(fc.record({ days, start: time, end: time }), { maxLength: 2 }),
        },
        { requiredKeys: ['id', 'intervals'] },
      ),
      { selector: (one) => one.id, maxLength: 3 },
    ),
    templates: fc.uniqueArray(fc.record({ id, ...bits, relaySetup: or(id) }, { requiredKeys: ['id'] }), {
      selector: (one) => one.id,
      maxLength: 3,
    }),
    doors: fc.uniqueArray(
      fc.record(
        {
          id: fc.uuid({ version: 4 }),
          accessPointId: fc.integer({ min: 1, max: 5_000 }),
          name: or(text),
          groupId: or(id),
          number: or(fc.nat(99)),
          options: or(
            fc.record(
              {
                accessInternal: fc.record({ doors: keys, interval: or(interval) }),
                outputs: fc.array(fc.record({ doorId: id, access: fc.record({ doors: keys }) }), {
                  maxLength: 2,
                }),
              },
              { requiredKeys: [] },
            ),
          ),
          standOpenEnabled: fc.boolean(),
          pmsId: or(id),
          scheduleId: or(id),
          templateId: or(id),
          mac: hex,
          connectionType: or(fc.constantFrom('zigbee', 'rs485')),
        },
        { requiredKeys: ['accessPointId'] },
      ),
      { selector: (one) => one.accessPointId, maxLength: 4 },
    ),
  },
  { requiredKeys: [] },
);

it('is taken back unchanged, and makes the same site elsewhere', { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(sites, async (drawn) => {
      fc.pre(siteSchema.safeParse(drawn).success);
      const here = await openDoorSite();
      expect((await here.siteImport(drawn)).status).toBe(200);
      const exported = await siteOf(here);
      const file = parseSite(yamlText(exported), 'site.yaml');
      expect(file.contradictions).toEqual([]);
      expect(file.site).toEqual(siteSchema.parse(exported));

      const again = await here.siteImport(file.site);
      expect(again.body.counts).toMatchObject({ added: 0, changed: 0, leftAlone: 0 });
      expect(again.body.written).toBe(false);

      const elsewhere = await openDoorSite();
      expect((await elsewhere.siteImport(file.site)).status).toBe(200);
      expect(await siteOf(elsewhere)).toEqual(exported);
      const [{ doors: _, ...there }, { doors: __, ...catalogue }] = [
        await everythingOn(elsewhere),
        await everythingOn(here),
      ];
      expect(there).toEqual(catalogue);
      expect(rowsOf(elsewhere)).toEqual(rowsOf(here));
    }),
    { numRuns: RUNS, seed: 20_261_123 },
  );
});

/** Each gateway draws the ids of its locks. */
const rowsOf = ({ table }: Awaited<ReturnType<typeof openDoorSite>>) =>
  table.allDoors.all().map((row) => ({ ...row, lock_id: null, config_correlation_id: null }));

async function siteOf(site: Awaited<ReturnType<typeof openDoorSite>>): Promise<Document> {
  const { status, body } = await send('GET', '/site', { app: site.local });
  expect(status).toBe(200);
  return body as unknown as Document;
}
