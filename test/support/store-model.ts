/**
 * Random transactions against a store and against a plain Map: both must hold the same.
 *
 * A transaction puts, deletes and reads, may throw at its end, and may be sent without waiting, so
 * that several share a commit and see each other's writes before they are durable. Reads inside
 * must see the newest state; a view must see one of the states that may be durable by then.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type BloomFilterBounds, newBloomFilter } from '../../src/store/bloom-filter.ts'
import { storeOf } from '../../src/store/group-commit.ts'
import type { Entry, Range, Store, View } from '../../src/store/store.ts'
import type { TreeHarness } from './store-suite.ts'

type Model = ReadonlyMap<string, string>
type Op =
  | { readonly op: 'put'; readonly key: string; readonly value: Buffer }
  | { readonly op: 'del'; readonly key: string }
  | { readonly op: 'get'; readonly key: string }
  | { readonly op: 'scan'; readonly range: Range }
type Step =
  | { readonly step: 'update'; readonly ops: readonly Op[]; throws: boolean; waits: boolean }
  | { readonly step: 'view'; readonly range: Range }
  | { readonly step: 'reopen' }

const byte = fc.constantFrom('\x00', '\x01', 'a', 'b', '\x7f', '\x80', '\xfe', '\xff')
const short = fc.array(byte, { minLength: 1, maxLength: 3 }).map((bytes) => bytes.join(''))
const long = short.map((key) => key.repeat(1978).slice(0, 1978))
const key = fc.oneof({ weight: 20, arbitrary: short }, { weight: 1, arbitrary: long })
const bound = fc.oneof(
  { weight: 20, arbitrary: key },
  { weight: 1, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: long.map((start) => `${start}\x00`) },
)
const size = fc.oneof(
  { weight: 20, arbitrary: fc.nat({ max: 40 }) },
  { weight: 1, arbitrary: fc.nat({ max: 20_000 }) },
)
const value = fc.tuple(size, fc.nat({ max: 255 })).map(([bytes, fill]) => Buffer.alloc(bytes, fill))
const range = fc
  .tuple(bound, bound, fc.constantFrom(0, 1, 2, 5, 1000), fc.boolean())
  .map(([from, to, limit, reverse]): Range => ({ from, to, limit, reverse }))
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant('put'), key, value }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('del'), key }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('get'), key }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('scan'), range }) },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      step: fc.constant('update'),
      ops: fc.array(op, { maxLength: 12 }),
      throws: fc.boolean(),
      waits: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ step: fc.constant('view'), range }) },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('reopen') }) },
)

const everything: Range = { from: '', to: '\xff'.repeat(1979), limit: 1_000_000 }

/** Runs random histories on fresh harnesses; the first that goes wrong is shrunk and thrown. */
export async function checkAgainstModel(makeHarness: () => Promise<TreeHarness>, runs: number) {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
      const harness = await makeHarness()
      try {
        await runHistory(harness, steps)
      } finally {
        await harness.remove()
      }
    }),
    { numRuns: runs },
  )
}

/** A filter that soon grows, and reads most keys after later commits. */
const tiny: BloomFilterBounds = {
  ...{ words_min: 4, words_max: 64, keys_per_commit: 1, keys_at_first: 1 },
  pause_factor: 0,
}

async function openStore(harness: TreeHarness): Promise<Store> {
  const tree = await harness.open()
  return storeOf(tree, { filter: newBloomFilter(tree, { from: 'a', to: 'b' }, tiny) })
}

async function runHistory(harness: TreeHarness, steps: readonly Step[]): Promise<void> {
  let store = await openStore(harness)
  let model: Model = new Map()
  /** The last state known to be durable, and each one behind it that may be. */
  let states: Model[] = [model]
  let sent: Promise<void>[] = []
  for (const next of steps) {
    if (next.step === 'update') {
      const [after, done] = runUpdate(store, model, next.ops, next.throws)
      if (after !== model) states.push(after)
      model = after
      sent.push(done)
      if (next.waits) {
        await Promise.all(sent)
        states = [model]
        sent = []
      }
    } else if (next.step === 'view') {
      await store.view((view) => checkView(view, states, next.range))
    } else if (harness.lasts) {
      const closed = store.close()
      await Promise.all(sent)
      await closed
      states = [model]
      sent = []
      store = await openStore(harness)
    }
  }
  await Promise.all(sent)
  await store.view((view) => checkView(view, [model], everything))
  await store.close()
}

/** The state behind the transaction, and a promise of the store's own verdict. */
function runUpdate(
  store: Store,
  before: Model,
  ops: readonly Op[],
  throws: boolean,
): [Model, Promise<void>] {
  const after = new Map(before)
  const wanted = new Error('thrown on purpose')
  const done = store.update((tx) => {
    for (const next of ops) {
      if (next.op === 'put') {
        tx.put(next.key, next.value)
        after.set(next.key, next.value.toString('latin1'))
      } else if (next.op === 'del') {
        tx.del(next.key)
        after.delete(next.key)
      } else if (next.op === 'get') {
        assert.equal(tx.get(next.key)?.toString('latin1'), after.get(next.key))
      } else {
        assert.deepEqual(entriesOf(tx.scan(next.range)), scanModel(after, next.range))
      }
    }
    if (throws) throw wanted
    return 'result'
  })
  if (throws) {
    return [before, assert.rejects(done, (error) => passOn(error, wanted))]
  }
  return [after, done.then((result) => assert.equal(result, 'result'))]
}

function passOn(error: unknown, wanted: Error): true {
  if (error !== wanted) throw error
  return true
}

function checkView(view: View, states: readonly Model[], range: Range): void {
  const seen = JSON.stringify(entriesOf(view.scan(everything)))
  const state = states.find((one) => JSON.stringify(scanModel(one, everything)) === seen)
  assert.ok(state, 'a view shows a state that never was, or is not durable any more')
  assert.deepEqual(entriesOf(view.scan(range)), scanModel(state, range))
  for (const [known, text] of state) assert.equal(view.get(known)?.toString('latin1'), text)
}

function entriesOf(entries: readonly Entry[]): [string, string][] {
  return entries.map((entry) => [entry.key, entry.value.toString('latin1')])
}

function scanModel(model: Model, { from, to, limit, reverse = false }: Range): [string, string][] {
  const inside = [...model].filter(([one]) => one >= from && one < to)
  inside.sort(([one], [other]) => (one < other ? -1 : 1))
  if (reverse) inside.reverse()
  return inside.slice(0, limit)
}
