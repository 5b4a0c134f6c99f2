/**
 * Random histories of tasks at a limit, and what must be true after each step: who holds a slot,
 * who waits, in which order they come in, also after crashes, changed limits and jumps of the
 * clock. The model is a list: whoever leaves makes room, and room is filled from the front.
 */
import assert from 'node:assert/strict'
import { keysOfType } from '../../src/codec/keys.ts'
import { decodeNumbers, encodeNumbers, type LimitNumbers } from '../../src/codec/records.ts'
import { after, callback, defineProcess, end, go, node } from '../../src/define.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { servedEngine } from '../../src/engine/served-engine.ts'
import { changesOf } from '../../src/store/changes/change-buffer.ts'
import { memoryTree } from '../../src/store/memory-tree.ts'
import type { Tree } from '../../src/store/tree.ts'
import { fakeClock } from './fake-clock.ts'
import { engineOn, settled, withSentinel } from './model-setup.ts'

/** A tree whose commits stop, as with a kill, and that may change what is written of limits. */
interface LimitTree extends Tree {
  commits_left: number
}

/** A defect of the engine, as a change of the numbers that it stores; for controls. */
export type Defect = (numbers: LimitNumbers) => LimitNumbers

export function treeWith(inner: Tree, defect: Defect | undefined): LimitTree {
  const { from, to } = keysOfType('limit')
  const tree: LimitTree = {
    ...inner,
    commits_left: Number.POSITIVE_INFINITY,
    async commit(changes) {
      if (tree.commits_left-- <= 0) throw new Error('killed')
      if (defect === undefined) return inner.commit(changes)
      const all = [...changes.range('', '\xff', false)].map(({ key, value }) => {
        if (value === null || key < from || key >= to) return [key, value] as const
        return [key, encodeNumbers(defect(decodeNumbers(value)))] as const
      })
      return inner.commit(changesOf(all))
    },
  }
  return tree
}

const definitionOf = (at_once: number) =>
  defineProcess({
    id: 'orders',
    title: String(at_once),
    nodes: {
      start: go('in'),
      in: node([callback(), go('done'), after({ seconds: 100 }).go('late')], {
        ...(at_once === 0 ? {} : { limit: [{ key: '{{customer}}', at_once }] }),
      }),
      late: callback(),
      done: end(),
    },
  })

interface Held {
  readonly ref: string
  due_ms: number
  /** `free`: it came while there was no limit. */
  state: 'holds' | 'waits' | 'free'
}

export async function runHistory(
  random: (below: number) => number,
  steps: number,
  defect?: Defect,
): Promise<void> {
  const inner = memoryTree()
  const clock = fakeClock()
  let tree = treeWith(inner, defect)
  const open = async (): Promise<Engine> => withSentinel(await engineOn(tree, { clock }))
  let engine = await open()
  let at_once = 2
  await engine.processes.put(definitionOf(at_once))
  const lines = new Map<number, Held[]>([0, 1, 2].map((customer) => [customer, []]))
  let made = 0

  const fill = (): void => {
    for (const line of lines.values()) {
      for (const one of line) {
        const held = line.filter(({ state }) => state === 'holds').length
        if (one.state === 'waits' && (at_once === 0 || held < at_once)) one.state = 'holds'
      }
    }
  }
  const enter = (customer: number, ref: string): void => {
    const due_ms = clock.now_ms() + 100_000
    lines.get(customer)?.push({ ref, due_ms, state: at_once === 0 ? 'free' : 'waits' })
  }
  const leave = (ref: string): void => {
    for (const [customer, line] of lines) {
      lines.set(
        customer,
        line.filter((one) => one.ref !== ref),
      )
    }
    fill()
  }
  const target = (ref: string) => ({ conv_id: 'orders', ref })
  /** The result of an op; undefined if it was lost with the program. */
  const done = async <T>(op: Promise<T>): Promise<T | undefined> => op.catch(() => undefined)

  async function step(): Promise<void> {
    const customer = random(3)
    const line = lines.get(customer) ?? []
    const one = line[random(line.length || 1)]
    const kind = random(12)
    if (kind < 4 || one === undefined) {
      const ref = String(made++)
      const result = await done(engine.create({ ...target(ref), data: { customer } }))
      if (result?.proc === 'ok') enter(customer, ref)
    } else if (kind < 7) {
      const result = await done(engine.modify({ ...target(one.ref), data: {}, is_sync: true }))
      const may = one.state === 'waits' ? 'no_api_callback_in_node_with_task' : 'ok'
      if (result !== undefined) assert.equal(result.proc, may)
      if (result?.proc === 'ok') leave(one.ref)
    } else if (kind === 7) {
      if ((await done(engine.tasks.cancel(target(one.ref))))?.proc === 'ok') leave(one.ref)
    } else if (kind === 8) {
      if ((await done(engine.tasks.move(target(one.ref), 'in')))?.proc === 'ok') {
        leave(one.ref)
        enter(customer, one.ref)
      }
    } else if (kind === 9) clock.advance(random(60_000))
    else if (kind === 10) clock.set(clock.now_ms() - random(30_000))
    else await done(engine.processes.put(definitionOf(random(5))))
  }

  async function expectAsModel(): Promise<void> {
    at_once = Number((await engine.processes.show('orders')).title)
    fill()
    for (const line of lines.values()) {
      for (const { ref, due_ms } of line) if (due_ms <= clock.now_ms()) leave(ref)
    }
    fill()
    const said: string[] = []
    const found: string[] = []
    for (const { ref, state } of [...lines.values()].flat()) {
      said.push(`${ref} ${state === 'waits' ? 'slot' : 'callback'}`)
      const task = await engine.task(target(ref))
      const [wait] = await servedEngine(engine).waitsOf([task?.obj_id ?? ''])
      found.push(`${ref} ${task?.node_id === 'in' ? wait?.for : task?.node_id}`)
    }
    assert.deepEqual(found, said)
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
    await expectAsModel()
  }
  assert.deepEqual((await engine.check()).breaches, [])
  // Everybody is served, and nothing is left of the limit.
  while ([...lines.values()].some((line) => line.length > 0)) {
    for (const { ref, state } of [...lines.values()].flat()) {
      if (state === 'waits') continue
      const { proc } = await engine.modify({ ...target(ref), data: {}, is_sync: true })
      assert.equal(proc, 'ok')
      leave(ref)
      await settled(clock)
    }
  }
  const { breaches, counts } = await engine.check()
  assert.deepEqual([breaches, counts.limit, counts.slot, counts.task_slot], [[], 0, 0, 0])
  await engine.close()
}
