/** Of the network or the far end, not of this program: where it was noticed says nothing. */
export class ConnectionFailure extends Error {
  override stack = '';
}
