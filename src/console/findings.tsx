/** What a look at something has found, the worst first. */
import type { Finding } from '../resources/rs485/bus-findings.ts';

const SEVERITIES = { bad: 'bad', doubtful: 'warn', good: 'good' } as const;
const ORDER = Object.keys(SEVERITIES);

export function Findings({ findings }: { findings: readonly Finding[] }) {
  const sorted = findings.toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  return (
    <ul class="cards">
      {sorted.map(({ severity, subject, text }) => (
        <li key={`${subject} ${text}`} class={`card ${SEVERITIES[severity]}`}>
          <strong>{subject}</strong>: {text}
        </li>
      ))}
    </ul>
  );
}
