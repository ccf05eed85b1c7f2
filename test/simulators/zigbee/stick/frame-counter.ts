/**
 * The outgoing frame counter of the network layer (Zigbee specification 05-3474-22, 4.3.1.2). A neighbour drops each frame
 * whose counter is not above the last one it has heard, after its radio has acknowledged it: the sender sees a success.
 */
import type { Core } from './core.ts';
import type { Network } from './nib.ts';

/** MAX_NWK_FRAMECOUNTER_CHANGES of Z-Stack: it is written after so many frames. */
const WRITTEN_EVERY = 1_250;

/** Of a network that starts: beyond all that may have been sent since it was last written. */
export function startFrameCounter(core: Core, network: Network): void {
  const written = core.nv().frameCounter(network);
  setFrameCounter(core, network, written === undefined ? 0 : written + WRITTEN_EVERY + 1);
}

export function nextFrameCounter(core: Core): number {
  const memory = core.memory();
  memory.frameCounter += 1;
  if (memory.network && memory.frameCounter % WRITTEN_EVERY === 0)
    core.nv().keepFrameCounter(memory.network, memory.frameCounter);
  return memory.frameCounter;
}

export function setFrameCounter(core: Core, network: Network | undefined, counter: number): void {
  core.memory().frameCounter = counter;
  if (network) core.nv().keepFrameCounter(network, counter);
}
