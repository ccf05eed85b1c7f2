/** The picture of a Zigbee network: it stays still, is pushed with a finger, and shows the name of what is touched. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Graph, PlacedNode } from './map-layout.ts';
import { t } from './words.ts';

interface NetworkPictureProps {
  graph: Graph;
  /** In lower case; what does not match is drawn pale. "": all matches. */
  sought: string;
  nameOf(hwId: string): string;
  /** Called with undefined for a touch beside all nodes. */
  touched(node: PlacedNode | undefined): void;
}

const HEIGHT = 360;
const RADIUS = 7;
/** What a fingertip covers. */
const REACH = 24;
const MARGIN = 20;
/** Below it the link is weak, as doors are judged (lqiOK). */
const WEAK_LQI = 60;
const ZOOM = 1.5;

interface View {
  /** Pixels for each unit, and where the middle of the network is. */
  scale: number;
  x: number;
  y: number;
}

export function NetworkPicture({ graph, sought, nameOf, touched }: NetworkPictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const nodes = useSignal<readonly PlacedNode[] | undefined>(undefined);
  const view = useSignal<View>({ scale: 1, x: 0, y: 0 });
  useEffect(() => {
    const worker = new Worker(new URL('./map-worker.ts', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<PlacedNode[]>) => {
      nodes.value = data;
      view.value = fitted(data, canvas.current?.clientWidth ?? HEIGHT);
    };
    worker.postMessage(graph);
    return () => worker.terminate();
  }, [graph]);
  useEffect(() => {
    const isFound = ({ hwId }: PlacedNode) =>
      sought === '' || hwId.includes(sought) || nameOf(hwId).toLowerCase().includes(sought);
    if (canvas.current && nodes.value) draw(canvas.current, nodes.value, view.value, isFound);
  }, [nodes.value, view.value, sought]);
  const zoom = (factor: number) => {
    view.value = { ...view.value, scale: view.value.scale * factor };
  };
  const push = usePushing(view, (x, y) => touched(nearest(nodes.value ?? [], view.value, x, y)));
  return (
    <div class="network">
      <canvas
        ref={canvas}
        height={HEIGHT}
        role="img"
        data-drawn={nodes.value ? '' : undefined}
        aria-label={t('mapPicture', { nodes: graph.nodes.length })}
        {...push}
      />
      {!nodes.value && <p role="status">{t('loading')}</p>}
      <span class="choices">
        <button type="button" aria-label={t('zoomIn')} onClick={() => zoom(ZOOM)}>
          +
        </button>
        <button type="button" aria-label={t('zoomOut')} onClick={() => zoom(1 / ZOOM)}>
          −
        </button>
      </span>
    </div>
  );
}

/** A finger that stays where it is touches; one that moves pushes the picture. */
function usePushing(view: { value: View }, touch: (x: number, y: number) => void) {
  const from = useRef<{ x: number; y: number; isPushed: boolean } | undefined>(undefined);
  return {
    onPointerDown(event: PointerEvent) {
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      from.current = { x: event.offsetX, y: event.offsetY, isPushed: false };
    },
    onPointerMove({ offsetX, offsetY }: PointerEvent) {
      const last = from.current;
      if (!last) return;
      const [x, y] = [offsetX - last.x, offsetY - last.y];
      if (!last.isPushed && Math.hypot(x, y) < RADIUS) return;
      from.current = { x: offsetX, y: offsetY, isPushed: true };
      view.value = { ...view.value, x: view.value.x + x, y: view.value.y + y };
    },
    onPointerUp({ offsetX, offsetY }: PointerEvent) {
      if (from.current?.isPushed === false) touch(offsetX, offsetY);
      from.current = undefined;
    },
  };
}

/** All of it, in the middle. */
function fitted(nodes: readonly PlacedNode[], width: number): View {
  const [xs, ys] = [nodes.map(({ x }) => x), nodes.map(({ y }) => y)];
  const [left, right] = [Math.min(0, ...xs), Math.max(0, ...xs)];
  const [top, bottom] = [Math.min(0, ...ys), Math.max(0, ...ys)];
  const scale = Math.min(
    2,
    (width - 2 * MARGIN) / Math.max(1, right - left),
    (HEIGHT - 2 * MARGIN) / Math.max(1, bottom - top),
  );
  return {
    scale,
    x: width / 2 - (scale * (left + right)) / 2,
    y: HEIGHT / 2 - (scale * (top + bottom)) / 2,
  };
}

function nearest(
  nodes: readonly PlacedNode[],
  { scale, x, y }: View,
  touchX: number,
  touchY: number,
): PlacedNode | undefined {
  let found: PlacedNode | undefined;
  let least = REACH;
  for (const node of nodes) {
    const distance = Math.hypot(scale * node.x + x - touchX, scale * node.y + y - touchY);
    if (distance < least) [found, least] = [node, distance];
  }
  return found;
}

function draw(
  canvas: HTMLCanvasElement,
  nodes: readonly PlacedNode[],
  { scale, x, y }: View,
  isFound: (node: PlacedNode) => boolean,
): void {
  const density = devicePixelRatio;
  const width = canvas.clientWidth;
  canvas.width = width * density;
  canvas.height = HEIGHT * density;
  const pen = canvas.getContext('2d');
  if (!pen) return;
  const colours = getComputedStyle(canvas);
  const colour = (name: string) => colours.getPropertyValue(`--${name}`);
  const [line, good, bad, accent] = [colour('line'), colour('good'), colour('bad'), colour('accent')];
  pen.scale(density, density);
  const places = new Map(nodes.map((node) => [node.hwId, [scale * node.x + x, scale * node.y + y] as const]));
  pen.strokeStyle = line;
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
    if (type !== 'endDevice') return accent;
    return (parent?.lqi ?? 0) < WEAK_LQI ? bad : good;
  };
  const radius = RADIUS * Math.min(1, Math.max(0.4, scale));
  const kinds = Map.groupBy(nodes, (node) => `${colourOf(node)} ${isFound(node)}`);
  for (const alike of kinds.values()) {
    const [first] = alike;
    if (!first) continue;
    pen.globalAlpha = isFound(first) ? 1 : 0.2;
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
