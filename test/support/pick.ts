/** Of each element of a list one member, or a list of several, for comparing lists in a line. */
export function pick<T extends object, Name extends keyof T>(
  list: readonly T[],
  name: Name,
): T[Name][]
export function pick<T extends object>(list: readonly T[], ...names: (keyof T)[]): unknown[][]
export function pick<T extends object>(list: readonly T[], ...names: (keyof T)[]): unknown[] {
  const [first, ...more] = names
  return list.map((one) =>
    more.length === 0 ? one[first as keyof T] : names.map((name) => one[name]),
  )
}
