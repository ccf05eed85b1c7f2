/**
 * Where each node of a Zigbee network is drawn. Pure, and the same for the same network: the picture never moves. Around each
 * router lie the nodes that reach the coordinator through it, those that are heard best the nearest.
 */

export interface Graph {
  nodes: { hwId: string; type: string }[];
  links: { from: string; to: string; lqi: number; isRoute: boolean }[];
  silent: string[];
}

export interface PlacedNode {
  hwId: string;
  type: string;
  x: number;
  y: number;
  /** Through which it reaches the coordinator, and how well that hears it; undefined: the coordinator, or a node that no one named. */
  parent?: { hwId: string; lqi: number };
}

/** Between the middles of two neighbours. */
const SPACING = 22;
/** 360° / φ²: seeds of a sunflower, which fill a disc evenly (H. Vogel, 1979). */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

export function layOut({ nodes, links }: Pick<Graph, 'nodes' | 'links'>): PlacedNode[] {
  const types = new Map(nodes.map(({ hwId, type }) => [hwId, type]));
  const heard = Map.groupBy(links, ({ from }) => from);
  const placed = new Map<string, PlacedNode>();
  const roots = nodes.filter(({ type }) => type === 'coordinator');
  const open: PlacedNode[] = (roots.length > 0 ? roots : nodes.slice(0, 1)).map(({ hwId, type }) => ({
    hwId,
    type,
    x: 0,
    y: 0,
  }));
  for (const root of open) placed.set(root.hwId, root);
  const children = new Map<string, PlacedNode[]>();
  // By hops: a node that several routers hear belongs to the one that is nearest to the coordinator.
  for (const parent of open) {
    const own = (heard.get(parent.hwId) ?? [])
      .filter(({ to }) => types.has(to) && !placed.has(to))
      .toSorted((one, other) => other.lqi - one.lqi)
      .map(({ to, lqi }): PlacedNode => {
        const node = { hwId: to, type: types.get(to) ?? '', x: 0, y: 0, parent: { hwId: parent.hwId, lqi } };
        placed.set(to, node);
        return node;
      });
    children.set(parent.hwId, own);
    open.push(...own);
  }
  for (const root of open) if (!root.parent) spread(root, children);
  return [...open, ...strays(nodes, placed)];
}

/** Places what hangs below a node, and gives the radius that all of it takes. */
function spread(node: PlacedNode, children: ReadonlyMap<string, PlacedNode[]>): number {
  const own = children.get(node.hwId) ?? [];
  const routers = own.filter(({ hwId }) => (children.get(hwId) ?? []).length > 0);
  const leaves = own.filter((one) => !routers.includes(one));
  for (const [index, leaf] of leaves.entries()) {
    const [radius, angle] = [SPACING * Math.sqrt(index + 2), index * GOLDEN_ANGLE];
    leaf.x = node.x + radius * Math.cos(angle);
    leaf.y = node.y + radius * Math.sin(angle);
  }
  const inner = SPACING * Math.sqrt(leaves.length + 2);
  if (routers.length === 0) return inner;
  // Each is laid out where its parent is, and then moved with all that hangs below it.
  const sizes = routers.map((router) => {
    Object.assign(router, { x: node.x, y: node.y });
    return spread(router, children);
  });
  const widest = Math.max(...sizes);
  const around = sizes.reduce((sum, size) => sum + 2 * size, 0) / (2 * Math.PI);
  const distance = Math.max(inner + widest + SPACING, around);
  for (const [index, router] of routers.entries()) {
    const angle = (2 * Math.PI * index) / routers.length;
    move(router, distance * Math.cos(angle), distance * Math.sin(angle), children);
  }
  return distance + widest;
}

function move(node: PlacedNode, x: number, y: number, children: ReadonlyMap<string, PlacedNode[]>): void {
  node.x += x;
  node.y += y;
  for (const child of children.get(node.hwId) ?? []) move(child, x, y, children);
}

/** Nodes that no one named as a neighbour: in a row below the others. */
function strays(nodes: Graph['nodes'], placed: ReadonlyMap<string, PlacedNode>): PlacedNode[] {
  const lowest = Math.max(0, ...[...placed.values()].map(({ y }) => y));
  return nodes
    .filter(({ hwId }) => !placed.has(hwId))
    .map(({ hwId, type }, index) => ({ hwId, type, x: index * SPACING, y: lowest + 3 * SPACING }));
}
