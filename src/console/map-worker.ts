/** Lays a network out and draws it, beside the page, which goes on meanwhile. */
import { drawNodes, type Look } from './map-drawing.ts';
import { type Graph, layOut, type PlacedNode } from './map-layout.ts';

/** What the page says: what it does not say stays as it was. */
export interface MapOrder {
  /** First, and once. */
  canvas?: OffscreenCanvas;
  look?: Look;
  graph?: Graph;
  /** Of nodes that have one, by their addresses. */
  names?: ReadonlyMap<string, string>;
  /** In lower case; what does not match is drawn pale. "": all matches. */
  sought?: string;
  /** The finger has moved so far. */
  push?: { x: number; y: number };
  /** Nearer by this factor. */
  zoom?: number;
  touch?: { x: number; y: number };
}

export type MapNews = { isDrawn: true } | { touched: PlacedNode | undefined };

/** What a fingertip covers. */
const REACH = 24;
const MARGIN = 20;
/** One node alone is not drawn as large as the page. */
const SCALE_MAX = 2;

let canvas: OffscreenCanvas | undefined;
let look: Look | undefined;
let nodes: PlacedNode[] | undefined;
let names: ReadonlyMap<string, string> = new Map();
let sought = '';
/** Pixels for each unit, and where the middle of the network is; undefined: all of it is to be seen. */
let view: { scale: number; x: number; y: number } | undefined;
let isPlanned = false;

const post = (news: MapNews) => postMessage(news);

addEventListener('message', ({ data }: MessageEvent<MapOrder>) => {
  canvas = data.canvas ?? canvas;
  look = data.look ?? look;
  names = data.names ?? names;
  sought = data.sought ?? sought;
  if (data.graph) [nodes, view] = [layOut(data.graph), undefined];
  if (nodes && look) view ??= fitted(nodes, look);
  if (view && data.push) view = { ...view, x: view.x + data.push.x, y: view.y + data.push.y };
  if (view && data.zoom) view = { ...view, scale: view.scale * data.zoom };
  if (data.touch) return post({ touched: nearest(data.touch) });
  // A finger moves more often than a frame is shown.
  if (!isPlanned) requestAnimationFrame(draw);
  isPlanned = true;
});

function draw(): void {
  isPlanned = false;
  if (!canvas || !look || !nodes || !view) return;
  const isFound = ({ hwId }: PlacedNode) =>
    sought === '' || hwId.includes(sought) || (names.get(hwId)?.toLowerCase().includes(sought) ?? false);
  drawNodes(canvas, look, nodes, view, isFound);
  post({ isDrawn: true });
}

/** All of it, in the middle. */
function fitted(placed: readonly PlacedNode[], { width, height }: Look) {
  const [xs, ys] = [placed.map(({ x }) => x), placed.map(({ y }) => y)];
  const [left, right] = [Math.min(0, ...xs), Math.max(0, ...xs)];
  const [top, bottom] = [Math.min(0, ...ys), Math.max(0, ...ys)];
  const scale = Math.min(
    SCALE_MAX,
    (width - 2 * MARGIN) / Math.max(1, right - left),
    (height - 2 * MARGIN) / Math.max(1, bottom - top),
  );
  return { scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 - (scale * (top + bottom)) / 2 };
}

function nearest(touch: { x: number; y: number }): PlacedNode | undefined {
  let found: PlacedNode | undefined;
  let least = REACH;
  if (!view) return undefined;
  const { scale, x, y } = view;
  for (const node of nodes ?? []) {
    const distance = Math.hypot(scale * node.x + x - touch.x, scale * node.y + y - touch.y);
    if (distance < least) [found, least] = [node, distance];
  }
  return found;
}
