/**
 * The last keys that the data file has of families that grow at their end, so that a key after them
 * costs no look-up. They are read when first asked for, and forgotten at each change of the file.
 */
import type { Key, KeyRange } from '../../codec/keys.ts'

export interface LastKeys {
  /** True only if the key is in a family, after all that the file has of it. */
  isAfter(key: Key): boolean
  /** The file may have others. */
  forget(): void
}

/** All keys of the families, and no others, begin with the same character. */
export function newLastKeys(
  families: readonly KeyRange[],
  lastIn: (family: KeyRange) => Key | undefined,
): LastKeys {
  const first = families[0]?.from.charCodeAt(0)
  const known = new Map<KeyRange, Key>()

  function lastOf(family: KeyRange): Key {
    const found = known.get(family) ?? lastIn(family) ?? family.from
    known.set(family, found)
    return found
  }

  return {
    isAfter(key) {
      if (key.charCodeAt(0) !== first) return false
      for (const family of families) {
        if (key >= family.from && key < family.to) return key > lastOf(family)
      }
      return false
    },
    forget: () => known.clear(),
  }
}
