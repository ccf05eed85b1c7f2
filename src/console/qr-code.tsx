/** A text for a phone's camera (ISO/IEC 18004), dark on light in both colour schemes: some cameras read nothing else. */
import { encode } from 'uqr';

/** ISO/IEC 18004, 9.1: light modules around it. */
const QUIET_ZONE = 4;

export function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { border: QUIET_ZONE });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path d={dark.join('')} />
    </svg>
  );
}
