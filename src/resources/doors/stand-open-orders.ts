/** Requests for standing open that are being stored. A caller that closes the door meanwhile withdraws them: nothing opens later. */
export interface Order {
  /** Why nothing is to be sent. */
  withdrawn: string | undefined;
}

export type Orders = ReturnType<typeof openOrders>;

export function openOrders() {
  const orders = new Map<string, Order & { over: Promise<void> }>();
  return {
    has: (doorId: string): boolean => orders.has(doorId),
    /** `settled` is called when the order takes effect; one that fails is over as well. One a door at a time (busy.ts). */
    async during<T>(doorId: string, work: (order: Order, settled: () => void) => Promise<T>): Promise<T> {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const order = { withdrawn: undefined, over };
      const settled = () => {
        if (orders.get(doorId) === order) orders.delete(doorId);
        resolve();
      };
      orders.set(doorId, order);
      try {
        return await work(order, settled);
      } finally {
        settled();
      }
    },
    /** Resolves when the order has been given up, or had taken effect before. */
    async withdraw(doorId: string, reason: string): Promise<void> {
      const order = orders.get(doorId);
      if (!order) return;
      order.withdrawn = reason;
      await order.over;
    },
  };
}
