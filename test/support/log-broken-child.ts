/**
 * Goes on writing groups into a store with a log although its disk fails, and tells as JSON what
 * each call answered: `log-broken-child PATH GROUPS PAUSE_MS`. It goes on for two groups behind the
 * first that was refused. Before that a line tells of each group that was acknowledged.
 * The failing is done from outside.
 */
import { storeOf } from '../../src/store/group-commit.ts'
import { groupOf, openLogged } from './log-setup.ts'

export interface LogTold {
  opened: string
  updates: string[]
  views: string[]
  failures: string[]
  unhandled: string[]
  closed: string
}

const [path = '', groups = '1', pause_ms = '1'] = process.argv.slice(2)
const told: LogTold = {
  ...{ opened: '', updates: [], views: [], failures: [], unhandled: [], closed: '' },
}
const codeOf = (error: unknown): string => (error as { code?: string }).code ?? String(error)
const ended = <T>(work: Promise<T>): Promise<string> => work.then(() => 'ok', codeOf)
process.on('unhandledRejection', (error) => void told.unhandled.push(String(error)))

async function run(): Promise<void> {
  const store = storeOf(await openLogged(path), {
    onFail: (failure) => void told.failures.push(failure.code),
  })
  for (let n = 1; n <= Number(groups); n++) {
    const update = store.update((tx) => {
      for (const [key, value] of groupOf(n)) value === null ? tx.del(key) : tx.put(key, value)
    })
    const answer = await ended(update)
    told.updates.push(answer)
    if (answer === 'ok') console.log('ok')
    // Unhandled rejections are reported meanwhile, and checkpoints go on.
    await new Promise((resolve) => setTimeout(resolve, Number(pause_ms)))
    told.views.push(await store.view((seen) => `${seen.get('last')}`).catch(codeOf))
    if (told.updates.filter((update) => update !== 'ok').length === 3) break
  }
  told.closed = await ended(store.close())
}

told.opened = await ended(run())
console.log(JSON.stringify(told))
