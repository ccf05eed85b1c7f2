/**
 * The library's handlers of what the adapter reports (dist/controller/controller.js). They are asynchronous and called as
 * listeners: what a frame makes them throw would end the process.
 */

const HANDLERS = [
  'onZclPayload',
  'onDeviceJoined',
  'onZdoResponse',
  'onDeviceLeave',
  'onAdapterDisconnected',
] as const;
type Handlers = Record<(typeof HANDLERS)[number], (...values: unknown[]) => unknown>;

/** Before the controller is started. */
export function guardHandlers(controller: object, failed: (reason: string) => void): void {
  const handlers = controller as Handlers;
  for (const name of HANDLERS) {
    const handle = handlers[name];
    handlers[name] = async (...values) => {
      try {
        await handle.apply(controller, values);
      } catch (error) {
        failed(`a frame was not understood: ${error instanceof Error ? error.message : 'no reason'}`);
      }
    };
  }
}
