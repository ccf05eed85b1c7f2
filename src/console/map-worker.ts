/** Lays a network out beside the page, which goes on meanwhile. */
import { type Graph, layOut } from './map-layout.ts';

addEventListener('message', ({ data }: MessageEvent<Graph>) => postMessage(layOut(data)));
