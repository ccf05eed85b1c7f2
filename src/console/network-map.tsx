/** The picture of a Zigbee network: it stays still, is pushed with a finger, and shows the name of what is touched. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Look } from './map-drawing.ts';
import type { Graph, PlacedNode } from './map-layout.ts';
import type { MapNews, MapOrder } from './map-worker.ts';
import { t } from './words.ts';

interface NetworkPictureProps {
  graph: Graph;
  /** In lower case; what does not match is drawn pale. "": all matches. */
  sought: string;
  /** Of nodes that have one, by their addresses. */
  names: ReadonlyMap<string, string>;
  /** Called with undefined for a touch beside all nodes. */
  touched(node: PlacedNode | undefined): void;
  /** It is there. */
  drawn(): void;
}

const HEIGHT = 360;
/** A finger that moves less than this touches. */
const STILL = 7;
const ZOOM = 1.5;

export function NetworkPicture({ graph, sought, names, touched, drawn }: NetworkPictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isDrawn = useSignal(false);
  const worker = useRef<Worker | undefined>(undefined);
  const order = (what: MapOrder, moved: Transferable[] = []) => worker.current?.postMessage(what, moved);
  useEffect(() => {
    const made = new Worker(new URL('./map-worker.ts', import.meta.url), { type: 'module' });
    made.onmessage = ({ data }: MessageEvent<MapNews>) => {
      if ('touched' in data) return touched(data.touched);
      if (isDrawn.value) return;
      isDrawn.value = true;
      drawn();
    };
    worker.current = made;
    const sheet = canvas.current?.transferControlToOffscreen();
    if (sheet) order({ canvas: sheet }, [sheet]);
    const watch = new ResizeObserver(() => canvas.current && order({ look: lookOf(canvas.current) }));
    if (canvas.current) watch.observe(canvas.current);
    return () => {
      watch.disconnect();
      made.terminate();
    };
  }, []);
  useEffect(() => {
    order({ graph });
  }, [graph]);
  useEffect(() => {
    order({ names, sought });
  }, [names, sought]);
  return (
    <div class="network">
      <canvas
        ref={canvas}
        height={HEIGHT}
        role="img"
        data-drawn={isDrawn.value ? '' : undefined}
        aria-label={t('mapPicture', { nodes: graph.nodes.length })}
        {...pushing(useRef<Finger | undefined>(undefined), order)}
      />
      {!isDrawn.value && <p role="status">{t('loading')}</p>}
      <span class="choices">
        <button type="button" aria-label={t('zoomIn')} onClick={() => order({ zoom: ZOOM })}>
          +
        </button>
        <button type="button" aria-label={t('zoomOut')} onClick={() => order({ zoom: 1 / ZOOM })}>
          −
        </button>
      </span>
    </div>
  );
}

interface Finger {
  x: number;
  y: number;
  isPushed: boolean;
}

/** A finger that stays where it is touches; one that moves pushes the picture. */
function pushing(from: { current: Finger | undefined }, order: (what: MapOrder) => void) {
  return {
    onPointerDown(event: PointerEvent) {
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      from.current = { x: event.offsetX, y: event.offsetY, isPushed: false };
    },
    onPointerMove({ offsetX, offsetY }: PointerEvent) {
      const last = from.current;
      if (!last) return;
      const [x, y] = [offsetX - last.x, offsetY - last.y];
      if (!last.isPushed && Math.hypot(x, y) < STILL) return;
      from.current = { x: offsetX, y: offsetY, isPushed: true };
      order({ push: { x, y } });
    },
    onPointerUp({ offsetX, offsetY }: PointerEvent) {
      if (from.current?.isPushed === false) order({ touch: { x: offsetX, y: offsetY } });
      from.current = undefined;
    },
  };
}

function lookOf(canvas: HTMLCanvasElement): Look {
  const colours = getComputedStyle(canvas);
  const colour = (name: string) => colours.getPropertyValue(`--${name}`);
  return {
    width: canvas.clientWidth,
    height: HEIGHT,
    density: devicePixelRatio,
    line: colour('line'),
    good: colour('good'),
    bad: colour('bad'),
    accent: colour('accent'),
  };
}
