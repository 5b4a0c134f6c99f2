/** Asks V8 for a garbage collection where much memory is free that it does not know of. */

/** The allocation makes V8 consider a collection; unwritten memory costs nothing. */
export function collect(): void {
  void new ArrayBuffer(128 * 1024 * 1024)
}
