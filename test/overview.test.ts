/**
 * What is told of an engine to those who watch: counts and rates against what was done, failed
 * tasks by cause, and that a watch is told nothing twice.
 */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Status } from '../src/core/model.ts'
import { servedEngine } from '../src/engine/served-engine.ts'
import { openEngine } from '../src/open.ts'
import type { Overview, ProcessRow } from '../src/overview/messages.ts'
import { newOverviews } from '../src/overview/overview.ts'
import { fakeClock } from './support/fake-clock.ts'
import { fill } from './support/search-setup.ts'

const clock = fakeClock()
const engine = servedEngine(
  await openEngine(':memory:', { clock, limits: { ended_kept_ms: 3_600_000, drain_ms_max: 0 } }),
)
after(() => engine.close())

/** The tasks by status as the counters of the nodes have them. */
async function counted(conv_id: string): Promise<ProcessRow['by_status']> {
  const { by_status } = await engine.tasks.count({ conv_id, status: 'any' })
  const found = Object.entries(by_status).filter(([, count]) => count > 0)
  return Object.fromEntries(found) as Partial<Record<Status, number>>
}

const rowOf = ({ processes }: Overview, conv_id: string): ProcessRow =>
  processes.find((row) => row.conv_id === conv_id) as ProcessRow

const sum = (numbers: readonly number[] = []): number => numbers.reduce((all, one) => all + one, 0)

describe('an overview', async () => {
  const before = await fill(engine, clock, 150)
  const overviews = newOverviews(engine)
  after(() => overviews.close())
  const watch = overviews.watch()
  const next = async (): Promise<Overview> => {
    clock.advance(1_000)
    return watch.next()
  }

  it('has the tasks that were there before', async () => {
    const first = await next()
    for (const conv_id of ['a', 'b']) {
      const { title, status, version, by_status } = rowOf(first, conv_id)
      assert.deepEqual(by_status, await counted(conv_id))
      assert.deepEqual([title, status, version], [`Process ${conv_id}`, 'active', 1])
    }
    assert.equal(before.length, 150)
    assert.deepEqual(sum(rowOf(first, 'a').done), 0)
  })

  it('tells nothing twice', async () => {
    await next()
    const { processes, removed, failed, health } = await next()
    assert.deepEqual([processes, removed, failed], [[], [], undefined])
    assert.equal(health.ok, true)
  })
})
