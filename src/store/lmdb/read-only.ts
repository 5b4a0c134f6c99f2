/**
 * Reads a data file without LMDB and without a change to any file. Each page is compared with its
 * sum when it is read.
 */
import { closeSync, openSync, statSync } from 'node:fs'
import { typeOfKey } from '../../codec/keys.ts'
import { fileFault } from '../disk/file-system.ts'
import type { Entry } from '../store.ts'
import type { Tree } from '../tree.ts'
import { damageOf, openingFault } from './damage.ts'
import type { FileUsage } from './lmdb-tree.ts'
import { magicOf, notOurs } from './open.ts'
import { checkedPages, damaged_meta, damagedPages } from './page-sums.ts'
import { quick_bytes_max } from './tree.ts'

export interface ReadOnlyTree extends Pick<Tree, 'get' | 'range' | 'close'> {
  /** As that of `LmdbTree`. */
  damage(): Promise<string[]>
  usage(): Pick<FileUsage, 'end_bytes'>
}

const damage_max = 100

/** Throws as `openLmdbTree`; a read throws `not_a_database` for a page that is damaged. */
export async function openLmdbReadOnly(path: string): Promise<ReadOnlyTree> {
  const magic = await magicOf(path)
  if (magic !== 'both') throw magic === 'one' ? openingFault(path, damaged_meta) : notOurs(path)
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    throw fileFault(path, error)
  }
  try {
    const pages = checkedPages(file)
    const is_quick = statSync(path).size <= quick_bytes_max
    for (const damaged of is_quick ? damagedPages(pages) : []) {
      if (damaged !== undefined) throw damaged
    }
    return {
      get(key) {
        try {
          return pages.entries.get(key)
        } catch (error) {
          throw openingFault(path, error)
        }
      },
      *range(from, to, reverse): Generator<Entry> {
        try {
          for (const entry of pages.entries.range(from, to, reverse)) {
            if (typeOfKey(entry.key) !== 'page_sum') yield entry
          }
        } catch (error) {
          throw openingFault(path, error)
        }
      },
      damage: () => damageOf(path, damage_max),
      usage: () => ({ end_bytes: (pages.meta.last_page + 1) * pages.meta.page_bytes }),
      close: async () => closeSync(file),
    }
  } catch (error) {
    closeSync(file)
    throw openingFault(path, error)
  }
}
