/**
 * The calls of fs-native-extensions that store/file-lock uses; the package has no types.
 */
declare module 'fs-native-extensions' {
  /** Takes an exclusive lock on the whole file; false when another holds one. */
  export function tryLock(fd: number): boolean
  export function unlock(fd: number): void
}
