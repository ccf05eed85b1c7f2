/** Commands of ZCL's foundation whose answers the library does not know. */

interface Commands {
  discoverCommands: { ID: number; response?: number };
  discoverCommandsRsp: { ID: number };
}

/** Without it the library waits for a default response to Discover Commands Received, and none comes. */
export function completeFoundation({ discoverCommands, discoverCommandsRsp }: Commands): void {
  discoverCommands.response = discoverCommandsRsp.ID;
}
