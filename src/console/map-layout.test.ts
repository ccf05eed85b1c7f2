import { expect, it } from 'vitest';
import { layOut } from './map-layout.ts';

const address = (index: number) => index.toString(16).padStart(16, '0');
/** A coordinator, routers that it hears, and locks that each router hears. */
function network(routers: number, locksOfEach: number) {
  const nodes = [{ hwId: address(0), type: 'coordinator' }];
  const links: { from: string; to: string; lqi: number; isRoute: boolean }[] = [];
  const add = (type: string, from: string, lqi: number) => {
    const hwId = address(nodes.length);
    nodes.push({ hwId, type });
    links.push({ from, to: hwId, lqi, isRoute: true });
    return hwId;
  };
  for (let router = 0; router < routers; router += 1) {
    const parent = add('router', address(0), 200 - router);
    for (let lock = 0; lock < locksOfEach; lock += 1) add('endDevice', parent, 250 - lock);
  }
  return { nodes, links };
}

it('places a thousand nodes, none upon another, and the same ones at the same places', () => {
  const graph = network(20, 49);
  const placed = layOut(graph);
  expect(placed).toHaveLength(1_001);
  expect(layOut(graph)).toEqual(placed);
  const cells = new Set(placed.map(({ x, y }) => `${Math.round(x / 11)} ${Math.round(y / 11)}`));
  expect(cells.size).toBe(placed.length);
});

it('has what a router hears best the nearest to it', () => {
  const [, router, first, ...others] = layOut(network(1, 30));
  const distance = (node: typeof router) =>
    Math.hypot((node?.x ?? 0) - (router?.x ?? 0), (node?.y ?? 0) - (router?.y ?? 0));
  expect(first?.parent).toEqual({ hwId: address(1), lqi: 250 });
  for (const other of others) expect(distance(other)).toBeGreaterThan(distance(first));
});

it('keeps a node that no one has named, beside the others', () => {
  const { nodes, links } = network(1, 2);
  const stray = { hwId: address(99), type: 'endDevice' };
  const placed = layOut({ nodes: [...nodes, stray], links });
  const last = placed.at(-1);
  expect(last).toMatchObject(stray);
  expect(last?.parent).toBeUndefined();
  expect(Math.max(...placed.slice(0, -1).map(({ y }) => y))).toBeLessThan(last?.y ?? 0);
});

it('follows a chain of routers, and routers in a ring that hear each other', () => {
  const { nodes, links } = network(3, 1);
  const back = { from: address(1), to: address(0), lqi: 90, isRoute: false };
  expect(layOut({ nodes, links: [...links, back] })).toEqual(layOut({ nodes, links }));
});
