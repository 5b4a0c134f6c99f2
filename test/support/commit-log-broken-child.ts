/**
 * Commits groups to a store whose disk fails, and prints the result of each call as JSON:
 * `commit-log-broken-child PATH GROUPS [wait]`. It tries three times after the first group that was
 * refused, again with the same where the disk was full; with `wait` the last group waits for a
 * failure. Before that it prints a line for each acknowledged group. The faults are injected from
 * outside.
 */
import type { Emit } from '../../src/core/events.ts'
import { storeOf } from '../../src/store/group-commit.ts'
import { groupOf, openAsEngine } from './commit-log-setup.ts'

export interface Results {
  opened: string
  updates: string[]
  views: string[]
  failures: string[]
  unhandled: string[]
  events: string[]
  closed: string
}

const failure_ms_max = 20_000

const [path = '', groups = '1', waits = ''] = process.argv.slice(2)
const results: Results = {
  ...{ opened: '', updates: [], views: [], failures: [], unhandled: [], events: [], closed: '' },
}
const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)
const ended = <T>(work: Promise<T>): Promise<string> => work.then(() => 'ok', codeOf)
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
process.on('unhandledRejection', (error) => void results.unhandled.push(String(error)))

async function run(): Promise<void> {
  const emit: Emit = (event) => void results.events.push(event)
  const store = storeOf(await openAsEngine(path, {}, emit), {
    emit,
    onFail: (failure) => void results.failures.push(failure.code),
  })
  for (let n = 1; n <= Number(groups); n++) {
    const until_ms = performance.now() + failure_ms_max
    if (waits === 'wait' && n === Number(groups)) {
      while (results.failures.length === 0 && performance.now() < until_ms) await pause(5)
    }
    const update = store.update((tx) => {
      for (const [key, value] of groupOf(n)) value === null ? tx.del(key) : tx.put(key, value)
    })
    const result = await ended(update)
    results.updates.push(result)
    if (result === 'no_space') n--
    if (result === 'ok') console.log('ok')
    // Unhandled rejections are reported meanwhile.
    await pause(1)
    results.views.push(await store.view((seen) => `${seen.get('last')}`).catch(codeOf))
    if (results.updates.filter((update) => update !== 'ok').length === 3) break
  }
  results.closed = await ended(store.close())
}

results.opened = await ended(run())
console.log(JSON.stringify(results))
