/** The tested versions of Node, as in package.json: of each major this minor or a later one. */
const minor_by_major: ReadonlyMap<number, number> = new Map([
  [20, 20],
  [22, 23],
  [24, 21],
  [26, 10],
])

export const supported_node = [...minor_by_major]
  .map(([major, minor]) => `^${major}.${minor}.0`)
  .join(' || ')

/** `version` is as of `process.version`, `v20.20.2`. */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return minor >= (minor_by_major.get(major) ?? Number.POSITIVE_INFINITY)
}
