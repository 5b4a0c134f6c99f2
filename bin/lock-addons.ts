/**
 * The native files of fs-native-extensions that the package and the bundle carry, one for each
 * platform that data files can be opened on. The rest of that package is not needed.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { native_platforms } from '../src/store/disk/native-part.ts'

export const addon_package = 'fs-native-extensions'

interface LockAddonFile {
  /** As `linux-x64`. */
  readonly place: string
  readonly path: string
}

/** Of the checkout `top`. */
export function lockAddons(top: string): LockAddonFile[] {
  const folder = join(top, 'node_modules', addon_package, 'prebuilds')
  return native_platforms.map((place) => ({
    place,
    path: join(folder, place, `${addon_package}.node`),
  }))
}

/** Where src/store/disk/lock-addon looks for them, with their license. */
export function copyLockAddons(top: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const { place, path } of lockAddons(top)) cpSync(path, join(folder, `${place}.node`))
  cpSync(join(top, 'node_modules', addon_package, 'LICENSE'), join(folder, 'LICENSE'))
}
