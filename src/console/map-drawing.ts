/** A network on a canvas, as it was laid out. */
import type { PlacedNode } from './map-layout.ts';

/** What the page knows of its canvas, in pixels of the style sheet. */
export interface Look {
  width: number;
  height: number;
  /** Pixels of the screen for each of those. */
  density: number;
  line: string;
  good: string;
  bad: string;
  accent: string;
}

const RADIUS = 7;
/** Below it the link is weak, as doors are judged (lqiOK). */
const WEAK_LQI = 60;
const PALE = 0.2;

export function drawNodes(
  canvas: OffscreenCanvas,
  { width, height, density, ...colours }: Look,
  nodes: readonly PlacedNode[],
  { scale, x, y }: { scale: number; x: number; y: number },
  isFound: (node: PlacedNode) => boolean,
): void {
  canvas.width = width * density;
  canvas.height = height * density;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  pen.scale(density, density);
  const places = new Map(nodes.map((node) => [node.hwId, [scale * node.x + x, scale * node.y + y] as const]));
  pen.strokeStyle = colours.line;
  pen.beginPath();
  for (const { hwId, parent } of nodes) {
    const [here, there] = [places.get(hwId), parent && places.get(parent.hwId)];
    if (!here || !there) continue;
    pen.moveTo(...here);
    pen.lineTo(...there);
  }
  pen.stroke();
  // One path for each colour: a thousand of their own take a phone a frame or more.
  const colourOf = ({ type, parent }: PlacedNode) => {
    if (type !== 'endDevice') return colours.accent;
    return (parent?.lqi ?? 0) < WEAK_LQI ? colours.bad : colours.good;
  };
  const radius = RADIUS * Math.min(1, Math.max(0.4, scale));
  const kinds = Map.groupBy(nodes, (node) => `${colourOf(node)} ${isFound(node)}`);
  for (const alike of kinds.values()) {
    const [first] = alike;
    if (!first) continue;
    pen.globalAlpha = isFound(first) ? 1 : PALE;
    pen.fillStyle = colourOf(first);
    pen.beginPath();
    for (const { hwId } of alike) {
      const [left, top] = places.get(hwId) ?? [0, 0];
      pen.moveTo(left + radius, top);
      pen.arc(left, top, radius, 0, 2 * Math.PI);
    }
    pen.fill();
  }
}
