/** What is judged by a peer, which may be missing: then it counts as missed. */
import type { Row } from '../table.ts';

export function ratioRow({
  what,
  ours,
  theirs,
  target,
}: {
  what: string;
  ours: number;
  theirs?: number;
  target: number;
}): Row {
  const aim = `≤ ${target} ×`;
  if (theirs === undefined) return { what, figure: 'not measured', target: aim, met: false };
  const ratio = ours / theirs;
  return { what, figure: `${ratio.toFixed(2)} ×`, target: aim, met: ratio <= target };
}
