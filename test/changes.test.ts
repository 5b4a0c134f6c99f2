/**
 * The feed of changes: a consumer that is killed and goes on from its position sees each change once
 * and in order, over restarts of the engine; the window of kept changes and what is said beyond it;
 * positions that are none; how an iterator ends; and entries as bytes.
 */
import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import { changesOfEntry, newChangeWriter } from '../src/codec/change-entry.ts'
import { changeKey, keysOfType } from '../src/codec/keys.ts'
import { statuses, type TaskRecord } from '../src/codec/task-record.ts'
import { fault } from '../src/core/faults.ts'
import { callback, defineProcess, end, go } from '../src/define.ts'
import type { ChangesOptions, TaskChange } from '../src/engine/api/change-api.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { anyCharacter } from './support/any-text.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'
import { runs } from './support/short-run.ts'
import { turns } from './support/store-trees.ts'

const definition = (id: string): object =>
  defineProcess({
    id,
    nodes: { start: go('wait'), wait: [callback(), go('done')], done: end({ save: true }) },
  })

/** An engine with processes `p` and `q`, in which a task waits for one callback. */
async function opened(
  tree: Tree,
  limits: { [Name in 'changes_kept_ms' | 'changes_bytes_max']?: number } = {},
  clock = fakeClock(),
): Promise<Engine> {
  const engine = await engineOn(tree, { limits, clock })
  for (const id of ['p', 'q']) await engine.processes.put(definition(id))
  return engine
}

const create = (ref: string, conv_id = 'p'): object => ({
  ...{ type: 'create', obj: 'task', conv_id, ref, data: { ref } },
})
const modify = (ref: string, conv_id = 'p'): object => ({ ...create(ref, conv_id), type: 'modify' })

const lineOf = ({ conv_id, ref, status, node_id }: TaskChange): string =>
  `${conv_id} ${ref} ${status} ${node_id}`

/** The next `count` changes. */
async function take(changes: AsyncIterator<TaskChange>, count: number): Promise<TaskChange[]> {
  const taken: TaskChange[] = []
  while (taken.length < count) {
    const { done, value } = await changes.next()
    assert.equal(done ?? false, false, 'the feed has ended')
    taken.push(value)
  }
  return taken
}

/** Everything that can be read from here on. */
async function readOut(engine: Engine, options: ChangesOptions): Promise<TaskChange[]> {
  const stop = new AbortController()
  const read: TaskChange[] = []
  const reading = (async () => {
    for await (const change of engine.changes({ ...options, signal: stop.signal }))
      read.push(change)
  })()
  for (let before = -1; before < read.length; ) {
    before = read.length
    await Promise.race([reading, turns(8)])
  }
  stop.abort()
  await reading
  return read
}

const breachesOf = async (engine: Engine): Promise<readonly string[]> =>
  (await engine.check()).breaches

test('a consumer killed at any moment goes on with the next change, also after restarts', async () => {
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ ops: fc.array(fc.nat(9), { minLength: 1, maxLength: 6 }) }),
    },
    { weight: 3, arbitrary: fc.record({ reads: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.constant({ restart: true as const }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const tree = memoryTree()
      let engine = await opened(tree)
      const written: string[] = []
      const read: TaskChange[] = []
      const waiting: string[] = []
      let made = 0
      const from = (): string => read.at(-1)?.position ?? 'start'
      for (const one of steps) {
        if ('restart' in one) {
          await engine.close()
          engine = await opened(tree)
        } else if ('reads' in one) {
          const count = Math.min(one.reads, written.length - read.length)
          read.push(...(await take(engine.changes({ from: from() }), count)))
        } else {
          const ops = one.ops.map((pick) => {
            const conv_id = pick % 2 === 0 ? 'p' : 'q'
            const ref = waiting[pick]
            if (ref === undefined) {
              waiting.push(`${conv_id} ${made}`)
              written.push(`${conv_id} ${made} delayed wait`)
              return create(String(made++), conv_id)
            }
            waiting.splice(pick, 1)
            written.push(`${ref} processed done`)
            const [of_conv = '', name = ''] = ref.split(' ')
            return modify(name, of_conv)
          })
          // Some in one transaction, some in several of one commit.
          const half = Math.floor(ops.length / 2)
          const lists = [ops.slice(0, half), ops.slice(half)].filter(({ length }) => length > 0)
          const results = await Promise.all(lists.map((list) => engine.apply(list)))
          assert.ok(results.flat().every(({ proc }) => proc === 'ok'))
        }
      }
      read.push(...(await take(engine.changes({ from: from() }), written.length - read.length)))
      assert.deepEqual(read.map(lineOf), written)
      assert.deepEqual((await readOut(engine, { from: 'start' })).map(lineOf), written)
      assert.deepEqual(await readOut(engine, { from: from() }), [])
      assert.deepEqual(await breachesOf(engine), [])
      await engine.close()
    }),
    { numRuns: runs(30) },
  )
})

describe('an iterator', () => {
  it('follows commits, of one process if asked, each with its task as it is now', async () => {
    const engine = await opened(memoryTree())
    await engine.apply([create('before')])
    const all = engine.changes()
    const of_q = engine.changes({ conv_id: 'q', data: true })
    const pending = take(of_q, 2)
    await engine.apply([create('a'), create('b', 'q'), modify('b', 'q'), modify('a')])
    assert.deepEqual((await take(all, 4)).map(lineOf), [
      ...['p a delayed wait', 'q b delayed wait', 'q b processed done', 'p a processed done'],
    ])
    const told = await pending
    assert.deepEqual(
      told.map(({ status, task }) => [status, task?.status, task?.data_text]),
      [
        ['delayed', 'processed', '{"ref":"b"}'],
        ['processed', 'processed', '{"ref":"b"}'],
      ],
    )
    assert.ok(told.every(({ position }) => position.length <= 80))
    await engine.close()
  })

  it('ends with its signal, by return and with the engine, also while it waits', async () => {
    const engine = await opened(memoryTree())
    const stop = new AbortController()
    const feeds = [
      engine.changes({ signal: stop.signal }),
      engine.changes(),
      engine.changes(),
      engine.changes({ signal: AbortSignal.abort() }),
    ] as const
    const nexts = feeds.map((feed) => feed.next())
    await turns()
    stop.abort()
    await feeds[1].return?.()
    const closing = engine.close()
    assert.deepEqual(new Set((await Promise.all(nexts)).map(({ done }) => done)), new Set([true]))
    await closing
    for (const feed of feeds) assert.equal((await feed.next()).done, true)
    assert.equal((await engine.changes({ from: 'start' }).next()).done, true)
  })

  it('gives each reader each change once', async () => {
    const engine = await opened(memoryTree())
    const feed = engine.changes()
    const watcher = engine.changes({ conv_id: 'p' })
    const both = Promise.all([feed.next(), feed.next()])
    await engine.apply([create('a'), create('b')])
    const refs = (await both).map(({ value }) => value?.ref)
    assert.deepEqual(refs.sort(), ['a', 'b'])
    const seen = [await watcher.next(), await watcher.next()]
    assert.deepEqual(
      seen.map(({ value }) => value?.ref),
      ['a', 'b'],
    )
    await engine.close()
  })
})

describe('a position', () => {
  type Case = readonly [what: string, from: (engine: Engine) => Promise<unknown>, code: string]
  const first = async (engine: Engine): Promise<string> =>
    (await take(engine.changes({ from: 'start' }), 1))[0]?.position ?? ''
  // biome-ignore format: a table
  const cases: readonly Case[] = [
    ['that is none',             async () => 'x',                                         'not_possible'],
    ['that is no text',          async () => 7,                                           'not_possible'],
    ['of another file',          async (engine) => (await first(engine)).replace(/.$/, (digit) => (digit === '0' ? '1' : '0')), 'not_possible'],
    ['of what was not written',  async (engine) => (await first(engine)).replace(/^[^.]+/, 'zz'), 'changes_gone'],
    ['behind the end of an entry', async (engine) => (await first(engine)).replace(/^([^.]+)\.[^.]+/, 'zz.7'), 'changes_gone'],
    ['of what another history of the file overwrote', async (engine) => (await first(engine)).replace(/^([^.]+\.[^.]+)\.[^.]+/, '$1.1'), 'changes_gone'],
    ['of before the first',      async (engine) => (await first(engine)).replace(/^[^.]+/, '0'), 'changes_gone'],
  ]
  for (const [what, from, code] of cases) {
    it(`${what}: ${code}`, async () => {
      const engine = await opened(memoryTree())
      await engine.apply([create('a'), create('b')])
      const position = (await from(engine)) as string
      await assert.rejects(engine.changes({ from: position }).next(), { code })
      await engine.close()
    })
  }

  it('of an unknown process, and a feed that is off', async () => {
    const engine = await opened(memoryTree())
    await assert.rejects(engine.changes({ conv_id: 'none' }).next(), { code: 'conv_not_found' })
    await engine.close()
    const off = await opened(memoryTree(), { changes_bytes_max: 0 })
    await assert.rejects(off.changes().next(), { code: 'not_possible' })
    assert.deepEqual(await breachesOf(off), [])
    await off.close()
  })
})

describe('the window', () => {
  const entriesIn = (tree: Tree): number => {
    const { from, to } = keysOfType('change')
    return [...tree.range(from, to, false)].length
  }

  it('keeps the bytes of the limit, in time and after restarts, and tells who falls out', async () => {
    const tree = memoryTree()
    const bytes_max = 4_096
    let engine = await opened(tree, { changes_bytes_max: bytes_max })
    await engine.apply([create('slow-1'), create('slow-2')])
    const slow = engine.changes({ from: 'start' })
    const [seen] = await take(slow, 1)
    const entry_bytes = 60
    for (let n = 0; n < 400; n++) {
      await engine.apply([create(`r${n}`)])
      if (n % 100 !== 99) continue
      await engine.close()
      engine = await opened(tree, { changes_bytes_max: bytes_max })
    }
    await turns(20)
    const kept = entriesIn(tree)
    assert.ok(kept * entry_bytes < 1.5 * bytes_max && kept > 50, `${kept} entries are kept`)
    assert.deepEqual(await breachesOf(engine), [])
    const gone = { code: 'changes_gone', message: /the oldest that is kept is of 20\d\d-/ }
    await assert.rejects(engine.changes({ from: seen?.position }).next(), gone)
    const rest = await readOut(engine, { from: 'start' })
    assert.equal(rest.length, kept)
    assert.equal(rest.at(-1)?.ref, 'r399')
    await engine.close()
  })

  it('keeps the time of the limit; an iterator that does not read in time is told', async () => {
    const clock = fakeClock()
    const tree = memoryTree()
    const engine = await opened(tree, { changes_kept_ms: 60_000 }, clock)
    await engine.apply([create('old')])
    const slow = engine.changes({ from: 'start' })
    await take(slow, 1)
    for (let n = 0; n < 10; n++) {
      clock.advance(10_000)
      await engine.apply([create(`r${n}`)])
      await turns()
    }
    assert.equal(entriesIn(tree), 7)
    await assert.rejects(slow.next(), { code: 'changes_gone' })
    assert.equal((await slow.next()).done, true)
    const refs = (await readOut(engine, { from: 'start' })).map(({ ref }) => ref)
    assert.deepEqual(refs, ['r3', 'r4', 'r5', 'r6', 'r7', 'r8', 'r9'])
    await engine.close()
  })

  it('is emptied where changes are switched off, and a consumer is told once they are on', async () => {
    const tree = memoryTree()
    let engine = await opened(tree)
    for (const ref of ['a', 'b', 'c']) await engine.apply([create(ref)])
    const last = (await take(engine.changes({ from: 'start' }), 3)).at(-1)?.position
    for (let times = 0; times < 2; times++) {
      await engine.close()
      engine = await opened(tree, { changes_bytes_max: 0 })
      await engine.apply([modify(times === 0 ? 'a' : 'b')])
      assert.equal(entriesIn(tree), 1)
    }
    await engine.close()
    engine = await opened(tree)
    await engine.apply([modify('c')])
    await assert.rejects(engine.changes({ from: last }).next(), { code: 'changes_gone' })
    const lines = (await readOut(engine, { from: 'start' })).map(lineOf)
    assert.deepEqual(lines, ['p c processed done'])
    assert.deepEqual(await breachesOf(engine), [])
    await engine.close()
  })

  it('has no gap after a commit that the disk refused', async () => {
    const below = memoryTree()
    let refuses = false
    const tree: Tree = {
      ...below,
      async commit(writes) {
        await turns(1)
        if (refuses) throw fault('no_space')
        await below.commit(writes)
      },
    }
    const engine = await opened(tree)
    await engine.apply([create('a')])
    refuses = true
    const refused = [create('b'), create('c')].map((op) => engine.apply([op]))
    for (const one of refused) await assert.rejects(one, { code: 'no_space' })
    refuses = false
    await Promise.all([create('d'), create('e')].map((op) => engine.apply([op])))
    const lines = (await readOut(engine, { from: 'start' })).map(({ ref }) => ref)
    assert.deepEqual(lines, ['a', 'd', 'e'])
    assert.deepEqual(await breachesOf(engine), [])
    await engine.close()
  })
})

test('a check names changes that are missing, damaged or out of order', async () => {
  const tree = memoryTree()
  const engine = await opened(tree)
  for (let n = 0; n < 6; n++) await engine.apply([create(`r${n}`)])
  const moved = tree.get(changeKey(6)) as Buffer
  await tree.commit(
    changesOf([
      [changeKey(2), null],
      [changeKey(4), Buffer.from([9])],
      [changeKey(7), Buffer.from(moved)],
    ]),
  )
  assert.deepEqual(await breachesOf(engine), [
    'the changes before number 3 are missing',
    'the changes of number 4 are damaged',
    'the changes before number 5 are missing',
    'the changes of number 7 do not follow those before',
  ])
  await engine.close()
})

test('what is written into an entry is read from it', () => {
  const text = fc.string({ unit: anyCharacter, maxLength: 8 })
  const change = fc.record({
    conv_id: fc.oneof(fc.constantFrom('1', '2', 'a\x00b'), text),
    node_id: fc.oneof(fc.constantFrom('a', 'b', 'ж'), text),
    obj_id: fc.stringMatching(/^[0-9a-e][0-9a-f]{23}$/),
    ref: fc.option(fc.oneof(text, fc.constant('я'.repeat(255))), { nil: undefined }),
    status: fc.constantFrom(...statuses),
  })
  const writer = newChangeWriter()
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      writer.clear()
      for (const { ref, ...rest } of changes) {
        const given = ref === undefined ? undefined : { text: ref, is_number: false }
        writer.add({ ...rest, ref: given } as TaskRecord)
      }
      const read = changesOfEntry(writer.entry(1, 2))
      assert.deepEqual(
        read,
        changes.map(({ ref, ...rest }) => ({ ...rest, ref: ref ?? null })),
      )
    }),
  )
})
