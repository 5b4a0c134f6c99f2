/**
 * Loads the native file of fs-native-extensions that locks files. The build puts one per platform
 * beside this module; a checkout has the package. Its Linux file works on musl too. The lock is
 * F_OFD_SETLK on Linux, flock on macOS, LockFileEx on Windows.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export interface LockAddon {
  /** `length` 0 means to the end. Throws `EAGAIN` if another holder has the lock. */
  tryLock(fd: number, offset: number, length: number, is_exclusive: boolean): void
}

export function loadLockAddon(): LockAddon {
  const require = createRequire(import.meta.url)
  const place = `${process.platform}-${process.arch}`
  const shipped = fileURLToPath(new URL(`./lock-addons/${place}.node`, import.meta.url))
  if (existsSync(shipped)) return require(shipped)
  return require(`fs-native-extensions/prebuilds/${place}/fs-native-extensions.node`)
}
