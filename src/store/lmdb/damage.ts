/** Messages for damaged pages: of all pages, of a refused opening, and of a later read. */
import { closeSync, openSync } from 'node:fs'
import { nextTurn } from '../../core/clock.ts'
import { type Fault, fault } from '../../core/faults.ts'
import { checkedPages, type DamagedPage, damagedPages, isDamagedPage } from './page-sums.ts'
import type { Summed } from './pages.ts'

const helps = 'run `npx conveyor restore BACKUP`'

/** At an opening. Returns other errors as they are. */
export function openingFault(path: string, error: unknown): unknown {
  if (!isDamagedPage(error)) return error
  if (error.is_missing) return fault('not_a_database', `${path} ends too early; ${helps}`)
  return fault('not_a_database', damageText(path, error))
}

/** For an open file. */
export function damageFault(path: string, damaged: DamagedPage): Fault {
  return fault('store_failed', damageText(path, damaged))
}

function damageText(path: string, { says }: DamagedPage): string {
  return `${path}: ${says}; ${helps}`
}

/**
 * A sentence per damaged page, up to `count_max`, in slices of the event loop. No commit may run
 * meanwhile. `values`: the values to check.
 */
export async function damageOf(
  path: string,
  count_max: number,
  values?: Summed,
): Promise<string[]> {
  const found: string[] = []
  const file = openSync(path, 'r')
  try {
    for (const damaged of damagedPages(checkedPages(file), values)) {
      if (damaged === undefined) await nextTurn()
      else found.push(damaged.says)
      if (found.length === count_max) break
    }
  } catch (error) {
    if (!isDamagedPage(error)) throw error
    found.push(error.says)
  } finally {
    closeSync(file)
  }
  return found
}
