/** Doors that somebody has to see to, by name: for `gatehouse status` and `gatehouse doctor`. */
import type { Status } from '../services/status/schema.ts';
import type { Finding, Severity } from './findings.ts';

export function doorFindings({
  notSeenLocked,
  offline,
}: Pick<Status['doors'], 'notSeenLocked' | 'offline'>): Finding[] {
  return [
    ...notSeenLocked.map((door) => findingOf(door, 'bad')),
    ...offline.map((door) => findingOf(door, 'doubtful')),
  ];
}

interface NamedDoor {
  accessPointId: number;
  name: string | null;
  message: string;
}

function findingOf({ accessPointId, name, message }: NamedDoor, severity: Severity): Finding {
  const subject = name === null ? `door ${accessPointId}` : `door ${accessPointId} ${name}`;
  return { severity, subject, text: message };
}
