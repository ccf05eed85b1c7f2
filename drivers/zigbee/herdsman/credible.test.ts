import { describe, expect, it } from 'vitest';
import { isCredible, isCredibleRecord } from './credible.ts';

const OWN = 0x1234;
const FOREIGN = 0x5678;
const head = (cluster: number, manufacturerCode?: number, fromServer = true) =>
  isCredible({ cluster, manufacturerCode, fromServer }, OWN);

describe('a frame', () => {
  it('of the Door Lock cluster is of the standard, and from its server', () => {
    expect(head(0x0101)).toBe(true);
    expect(head(0x0101, FOREIGN)).toBe(false);
    expect(head(0x0101, OWN)).toBe(false);
    expect(head(0x0101, undefined, false)).toBe(false);
  });

  it("of the locks' own cluster has the code of its maker", () => {
    expect([head(0xfc11, OWN), head(0xfc11, FOREIGN), head(0xfc11)]).toEqual([true, false, false]);
  });

  it('of a cluster that no one listens to is as it is', () => {
    expect([head(0x0000, FOREIGN), head(0xfc99, FOREIGN, false)]).toEqual([true, true]);
  });
});

describe('a record', () => {
  // Types by ZCL rev. 8, table 2-11: enum8 30, uint8 20, uint16 21, bitmap16 19, int8 28, single 39, string 42.
  it.each([
    [0x0101, 0x0000, 0x30, true],
    [0x0101, 0x0000, 0x20, false],
    [0x0101, 0x0000, 0x39, false],
    [0x0101, 0x0000, 0x42, false],
    [0x0101, 0x0026, 0x19, true],
    [0x0101, 0x7777, 0x30, false],
    [0x0001, 0x0021, 0x20, true],
    [0x0001, 0x0021, 0x21, false],
    [0x0b05, 0x011d, 0x28, true],
    [0x0b05, 0x011d, 0x20, false],
    [0xfc11, 0x0000, 0x23, true],
    [0xfc11, 0x0010, 0x42, true],
    [0xfc11, 0x0010, 0x23, false],
    [0x0000, 0x4000, 0x42, true],
  ])('of cluster %i, attribute %i and type %i is credible: %s', (cluster, id, type, is) => {
    expect(isCredibleRecord(cluster, id, type)).toBe(is);
  });
});
