/**
 * The versions of Node that this program is tested on, as package.json states them: of each listed
 * major the stated minor or a later one.
 */
const minor_by_major: ReadonlyMap<number, number> = new Map([
  [20, 20],
  [22, 23],
  [24, 21],
  [26, 10],
])

/** As `engines` of package.json has it. */
export const supported_node = [...minor_by_major]
  .map(([major, minor]) => `^${major}.${minor}.0`)
  .join(' || ')

/** `version` is as of `process.version`, `v20.20.2`. */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return minor >= (minor_by_major.get(major) ?? Number.POSITIVE_INFINITY)
}
