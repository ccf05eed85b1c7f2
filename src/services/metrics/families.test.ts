import { expect, it } from 'vitest';
import { databaseCheck } from './families.ts';

/** Name, labels and value of each series. */
const series = (check: Parameters<typeof databaseCheck>[0]) =>
  databaseCheck(check).flatMap(({ name, values }) =>
    values.map(({ labels, value }) => [name, ...Object.values(labels), value].join(' ')),
  );

it('shows the result of the last check of the database, its end and its age', () => {
  const check = {
    verdict: 'damaged',
    endedAt: '2026-11-22T08:00:00.000Z',
    ageSeconds: 7_200,
    findings: [],
  } as const;
  expect(series({ ...check, findings: ['row 2 missing from index i'] })).toEqual([
    'gatehouse_database_check pending 0',
    'gatehouse_database_check sound 0',
    'gatehouse_database_check damaged 1',
    'gatehouse_database_check failed 0',
    `gatehouse_database_check_end_time_seconds ${Date.parse('2026-11-22T08:00:00.000Z') / 1_000}`,
    'gatehouse_database_check_age_seconds 7200',
  ]);
});

it('shows no end and no age before the first check', () => {
  expect(series({ verdict: 'pending', endedAt: null, ageSeconds: null, findings: [] })).toEqual([
    'gatehouse_database_check pending 1',
    'gatehouse_database_check sound 0',
    'gatehouse_database_check damaged 0',
    'gatehouse_database_check failed 0',
  ]);
});
