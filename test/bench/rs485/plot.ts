/** Bar charts as SVG, for documents. */

export interface BarChart {
  title: string;
  /** One colour each. */
  series: readonly string[];
  panels: readonly {
    title: string;
    /** A value for each series. */
    groups: readonly { label: string; values: readonly number[] }[];
  }[];
}

const PANEL = { width: 300, height: 220, gap: 24 };
const MARGIN = { left: 16, top: 76, bottom: 40 };
const BAR = { width: 36, gap: 6 };
/** Distinct for people who see few colours (Okabe and Ito), and in grey. */
const COLOURS = ['#0072b2', '#e69f00', '#999999', '#009e73'];
const FONT = 'font-family="system-ui, sans-serif"';

export function barChart({ title, series, panels }: BarChart): string {
  const width = 2 * MARGIN.left + panels.length * PANEL.width + (panels.length - 1) * PANEL.gap;
  const height = MARGIN.top + PANEL.height + MARGIN.bottom;
  const legend = series.map((name, index) =>
    [
      `<rect x="${MARGIN.left + index * 140}" y="38" width="12" height="12" fill="${COLOURS[index]}"/>`,
      text(MARGIN.left + 18 + index * 140, 48, name, 12),
    ].join(''),
  );
  const drawn = panels.map((panel, index) =>
    drawPanel(panel, MARGIN.left + index * (PANEL.width + PANEL.gap)),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    text(MARGIN.left, 22, title, 15),
    ...legend,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function drawPanel({ title, groups }: BarChart['panels'][number], left: number): string {
  const most = Math.max(...groups.flatMap(({ values }) => values));
  const floor = MARGIN.top + PANEL.height;
  const room = PANEL.height - 40;
  const groupWidth = PANEL.width / groups.length;
  const lines = [text(left, MARGIN.top + 4, title, 12)];
  for (const [index, { label, values }] of groups.entries()) {
    const begin = left + index * groupWidth;
    for (const [which, value] of values.entries()) {
      const tall = (room * value) / most;
      const x = begin + which * (BAR.width + BAR.gap);
      lines.push(
        `<rect x="${x}" y="${(floor - tall).toFixed(1)}" width="${BAR.width}" height="${tall.toFixed(1)}" fill="${COLOURS[which]}"/>`,
        text(x + BAR.width / 2, floor - tall - 4, value.toFixed(value < 100 ? 1 : 0), 11, 'middle'),
      );
    }
    lines.push(text(begin, floor + 18, label, 12));
  }
  lines.push(
    `<line x1="${left}" y1="${floor}" x2="${left + PANEL.width}" y2="${floor}" stroke="#333333" stroke-width="1"/>`,
  );
  return lines.join('\n');
}

function text(x: number, y: number, words: string, size: number, anchor = 'start'): string {
  return `<text x="${x}" y="${y.toFixed(1)}" ${FONT} font-size="${size}" fill="#222222" text-anchor="${anchor}">${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
