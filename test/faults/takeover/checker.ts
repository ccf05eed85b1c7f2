/** Reads what the gateways have recorded, and says what is wrong. Offline: it knows nothing of how it came. */
import type { Records } from './gateway.ts';

export function faultsOf({ tenures, closed, answered }: Records, rowsAtEnd: readonly string[]): string[] {
  const faults: string[] = [];
  const holders = tenures.toSorted((one, other) => one.at - other.at);
  const holderAt = (at: number) => holders.findLast((tenure) => tenure.at <= at)?.name;
  for (const { name, at } of closed)
    if (holderAt(at) !== name) faults.push(`${name} has closed a relay, and ${holderAt(at)} was active`);
  for (const { name, row, at } of answered)
    if (holderAt(at) !== name) faults.push(`${name} has answered ${row}, and ${holderAt(at)} was active`);
  for (const [index, { epoch, at, name, rows }] of holders.entries()) {
    const before = holders[index - 1];
    if (before && epoch <= before.epoch) faults.push(`epoch ${epoch} of ${name} after ${before.epoch}`);
    const has = new Set(rows);
    for (const one of answered)
      if (one.at <= at && !has.has(one.row))
        faults.push(`${one.row} was answered by ${one.name}, and ${name} has not got it`);
  }
  const has = new Set(rowsAtEnd);
  for (const { row, name } of answered)
    if (!has.has(row)) faults.push(`${row}, answered by ${name}, is lost`);
  return [...new Set(faults)];
}
