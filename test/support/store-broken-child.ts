/**
 * Goes on although its disk fails, and tells as JSON what each call answered:
 * `store-broken-child PATH [in_place]`. The failing is done from outside.
 */
import { storeOf } from '../../src/store/group.ts'
import { openLmdbTree } from '../../src/store/lmdb-tree.ts'

export interface Told {
  updates: string[]
  views: string[]
  failures: string[]
  unhandled: string[]
}

const [path = '', how] = process.argv.slice(2)
const told: Told = { updates: [], views: [], failures: [], unhandled: [] }
const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)
process.on('unhandledRejection', (error) => void told.unhandled.push(String(error)))

const store = storeOf(await openLmdbTree(path, { in_place: how === 'in_place' }), {
  onFail: (failure) => void told.failures.push(failure.code),
})
for (let n = 0; n < 4; n++) {
  const update = store.update((tx) => {
    tx.put('last', Buffer.from(String(n)))
    tx.put(`large ${n}`, Buffer.alloc(10_000))
  })
  told.updates.push(await update.then(() => 'ok', codeOf))
  // Time for what nobody handled to come up.
  await new Promise((resolve) => setTimeout(resolve, 10))
  const view = store.view((seen) => `${seen.get('last')}`)
  told.views.push(await view.catch(codeOf))
}
await store.close()
console.log(JSON.stringify(told))
