/**
 * Random histories of tasks at a rate: never more than the rate and the burst allow in any time,
 * first in first out for each value, and everybody is served, also after crashes, cancels and jumps
 * of the clock. Time is what the clock has advanced: a jump back is no time.
 */
import assert from 'node:assert/strict'
import { callback, defineProcess, end, go, node } from '../../src/define.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { memoryTree } from '../../src/store/memory-tree.ts'
import { fakeClock } from './fake-clock.ts'
import { type Defect, treeWith } from './limit-model.ts'
import { engineOn, settled, withSentinel } from './model-setup.ts'

const rate = { rate: 3, per_s: 7, burst: 2 }
const interval_ms = (1_000 * rate.per_s) / rate.rate

const calls = defineProcess({
  id: 'calls',
  nodes: {
    start: go('in'),
    in: node([callback(), go('done')], { limit: [{ key: '{{bank}}', ...rate }] }),
    done: end(),
  },
})

interface Line {
  /** In the order in which they came. */
  waiting: string[]
  readonly passed_ms: number[]
}

export async function runRates(
  random: (below: number) => number,
  steps: number,
  defect?: Defect,
): Promise<void> {
  const inner = memoryTree()
  const clock = fakeClock()
  let tree = treeWith(inner, defect)
  const open = async (): Promise<Engine> => withSentinel(await engineOn(tree, { clock }))
  let engine = await open()
  await engine.processes.put(calls)
  const lines = new Map<number, Line>([0, 1].map((bank) => [bank, { waiting: [], passed_ms: [] }]))
  let passed_ms = 0
  let back_ms = 0
  let made = 0
  const target = (ref: string) => ({ conv_id: 'calls', ref })

  const advance = (by_ms: number): void => {
    passed_ms += by_ms
    clock.advance(by_ms)
  }

  async function step(): Promise<void> {
    const bank = random(2)
    const line = lines.get(bank) as Line
    const kind = random(10)
    if (kind < 5) {
      const ref = String(made++)
      const made_ok = await engine.create({ ...target(ref), data: { bank } }).catch(() => undefined)
      if (made_ok?.proc === 'ok') line.waiting.push(ref)
    } else if (kind === 5 && line.waiting.length > 0) {
      const ref = line.waiting[random(line.waiting.length)] as string
      const ended = await engine.tasks.cancel(target(ref)).catch(() => undefined)
      if (ended?.proc === 'ok') line.waiting = line.waiting.filter((one) => one !== ref)
    } else if (kind < 9) advance(random(2 * interval_ms))
    else {
      const by_ms = random(3_000)
      back_ms += by_ms
      clock.set(clock.now_ms() - by_ms)
    }
  }

  /** Those who have passed are first in their line, and not too many. */
  async function look(): Promise<void> {
    for (const line of lines.values()) {
      const waits: string[] = []
      for (const ref of line.waiting) {
        const task = await engine.task(target(ref))
        const [wait] = await servedEngine(engine).waitsOf([task?.obj_id ?? ''])
        if (wait?.for === 'slot') waits.push(ref)
        else {
          assert.deepEqual(waits, [], `${ref} has passed before others`)
          assert.equal(wait?.for, 'callback')
          line.passed_ms.push(passed_ms)
        }
      }
      line.waiting = waits
      for (const [from, since_ms] of line.passed_ms.entries()) {
        const count = line.passed_ms.length - from
        const most = rate.burst + (passed_ms - since_ms) / interval_ms
        assert.ok(count <= most + 1e-6, `${count} passed in ${passed_ms - since_ms} ms`)
      }
    }
  }

  for (let n = 0; n < steps; n++) {
    const is_killed = random(8) === 0
    if (is_killed) tree.commits_left = random(3)
    await step()
    if (is_killed) {
      await engine.close().catch(() => {})
      tree = treeWith(inner, defect)
      engine = await open()
    }
    await settled(clock)
    await look()
  }
  assert.deepEqual((await engine.check()).breaches, [])
  // What the clock was set back, timers wait longer; then one passes in each interval.
  advance(back_ms + interval_ms)
  await settled(clock)
  await look()
  for (
    let left = Math.max(...[...lines.values()].map(({ waiting }) => waiting.length));
    left > 0;
  ) {
    advance(interval_ms + 1)
    await settled(clock)
    await look()
    const now = Math.max(...[...lines.values()].map(({ waiting }) => waiting.length))
    assert.ok(now < left, 'nobody has passed in an interval')
    left = now
  }
  for (let n = 0; n < made; n++) await engine.modify({ ...target(String(n)), data: {} })
  advance(10 * interval_ms)
  await settled(clock)
  const { breaches, counts } = await engine.check()
  const left = [counts.limit, counts.slot, counts.task_slot, counts.limit_due]
  assert.deepEqual([breaches, ...left], [[], 0, 0, 0, 0])
  await engine.close()
}
