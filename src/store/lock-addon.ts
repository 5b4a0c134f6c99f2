/**
 * Loads the native file of fs-native-extensions that locks files. `npm run build` puts one for each
 * platform beside this module, so an installation does not need that package; a checkout has it.
 *
 * That package looks for another file on musl, which it does not ship. Its file for Linux needs
 * nothing of glibc that musl lacks, so the platform and the processor alone choose the file. On
 * Linux the lock is that of an open file description (F_OFD_SETLK), on macOS flock, on Windows
 * LockFileEx.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export interface LockAddon {
  /** `length` 0 is to the end. Throws `EAGAIN` where another holder has the lock. */
  tryLock(fd: number, offset: number, length: number, is_exclusive: boolean): void
}

/** Throws where it does not load. */
export function loadLockAddon(): LockAddon {
  const require = createRequire(import.meta.url)
  const place = `${process.platform}-${process.arch}`
  const shipped = fileURLToPath(new URL(`./lock-addons/${place}.node`, import.meta.url))
  if (existsSync(shipped)) return require(shipped)
  return require(`fs-native-extensions/prebuilds/${place}/fs-native-extensions.node`)
}
