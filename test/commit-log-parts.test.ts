/**
 * The parts of the commit log, each against a plain Map: frames, sorting by key, memtables, change
 * buffers, merged ranges and scan hints.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import fc from 'fast-check'
import { type Change, changesOf, newChangeBuffer } from '../src/store/changes/change-buffer.ts'
import { keyAt, valueAt } from '../src/store/changes/change-encoding.ts'
import {
  changeOffsets,
  changesAt,
  type Frame,
  frameBytes,
  framesIn,
  sealFrame,
} from '../src/store/commit-log/frame.ts'
import { sortLastByKey } from '../src/store/commit-log/key-sort.ts'
import { newScanHints } from '../src/store/commit-log/scan-hints.ts'
import { buildFrame, newMemtable, publishFrame } from '../src/store/commit-log/writer.ts'
import { mergedRange } from '../src/store/merged-range.ts'
import { openWithCommitLog, tiny_bounds } from './support/commit-log-setup.ts'
import { runs } from './support/short-run.ts'
import { quickFolder } from './support/store-folder.ts'

type Values = Map<string, Buffer | null>

const id = Buffer.from('any name')
const byte = fc.constantFrom('\x00', 'a', 'b', 'C', '\x80', '\xff')
const key = fc.array(byte, { minLength: 1, maxLength: 4 }).map((bytes) => bytes.join(''))
const value = fc.option(fc.uint8Array({ maxLength: 90 }).map((bytes) => Buffer.from(bytes)))
const writes = fc
  .array(fc.tuple(key, value), { maxLength: 12 })
  .map((changes): Values => new Map(changes))
const bounds = fc.tuple(key, key, fc.boolean())

/** A key may come more than once. */
function frameOf(seq: number, changes: Iterable<readonly [string, Buffer | null]>): Buffer {
  const buffer = changesOf(changes)
  const change_bytes = buffer.bytes()
  const arena = Buffer.alloc(frameBytes(change_bytes), 0xee)
  buffer.copyTo(arena, changesAt(0))
  return sealFrame(arena, 0, { id, seq, count: buffer.count(), change_bytes })
}

/** The entries of a model between two keys, in order. */
function between(values: Values, from: string, to: string, reverse: boolean): Change[] {
  const found = [...values]
    .filter(([name]) => name >= from && name < to)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, bytes]) => ({ key: name, value: bytes }))
  return reverse ? found.reverse() : found
}

function* changesIn(frame: Frame): Generator<Change> {
  for (const offset of changeOffsets([frame])) {
    yield { key: keyAt(frame.segment, offset), value: valueAt(frame.segment, offset) }
  }
}

const copied = (changes: Iterable<Change>): Change[] =>
  [...changes].map((change) => ({
    key: change.key,
    value: change.value === null ? null : Buffer.from(change.value),
  }))

describe('frames', () => {
  it('come back as they were written, whatever is around them', () => {
    const around = fc.uint8Array({ maxLength: 200 }).map((bytes) => {
      const noise = Buffer.alloc(Math.ceil(bytes.length / 64) * 64)
      noise.set(bytes)
      return noise
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(around, writes), { maxLength: 5 }), around, (parts, tail) => {
        const segment = Buffer.concat([
          ...parts.flatMap(([noise, changes], n) => [noise, frameOf(n + 1, changes)]),
          tail,
        ])
        const found = [...framesIn(segment)]
        assert.equal(found.length, parts.length)
        for (const [n, [, changes]] of parts.entries()) {
          const frame = found[n] as (typeof found)[number]
          assert.equal(frame.seq, n + 1)
          assert.ok(frame.id.equals(id))
          assert.deepEqual(copied(changesIn(frame)), copied(listed(changes)))
        }
      }),
    )
  })

  it('a flipped bit is detected', () => {
    fc.assert(
      fc.property(writes, fc.nat(), (changes, chance) => {
        const frame = frameOf(7, changes)
        const bit = chance % (8 * frame.length)
        frame.writeUInt8(frame.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
        assert.deepEqual([...framesIn(frame)], [])
      }),
      { numRuns: runs(2_000) },
    )
  })

  it('a missing or changed part is detected', () => {
    fc.assert(
      fc.property(writes, fc.nat(), fc.nat(), fc.boolean(), (changes, at, more, is_cut) => {
        const frame = frameOf(7, changes)
        const whole = Buffer.from(frame)
        const from = at % frame.length
        const torn = is_cut
          ? frame.subarray(0, from)
          : frame.fill(more & 0xff, from, from + 1 + (more % (frame.length - from)))
        if (!torn.equals(whole)) assert.deepEqual([...framesIn(torn)], [])
      }),
      { numRuns: runs(2_000) },
    )
  })

  const listed = (changes: Values): Change[] =>
    [...changes].map(([name, bytes]) => ({ key: name, value: bytes }))
})

describe('the last changes by key', () => {
  /** The last change of each key as sorted, from frames of `each` changes. */
  function sorted(all: readonly (readonly [string, Buffer | null])[], each = 3): Change[] {
    const frames: Buffer[] = []
    for (let at = 0; at < all.length; at += each) {
      frames.push(frameOf(frames.length + 1, all.slice(at, at + each)))
    }
    const segment = Buffer.concat(frames)
    const offsets = [...sortLastByKey(segment, changeOffsets(framesIn(segment)))]
    return offsets.map((at) => ({ key: keyAt(segment, at), value: valueAt(segment, at) }))
  }

  function assertSorted(all: readonly (readonly [string, Buffer | null])[], each?: number): void {
    const expected = between(new Map(all), '', '\xff'.repeat(70_000), false)
    const found = sorted(all, each)
    assert.deepEqual(
      found.map((change) => change.key),
      expected.map((change) => change.key),
    )
    for (const [at, { value: bytes }] of found.entries()) {
      const theirs = expected[at]?.value as Buffer | null
      assert.ok(bytes === theirs || (bytes && theirs?.equals(bytes)), `value ${at}`)
    }
  }

  const few_bytes = fc.constantFrom('\x00', '\x01', 'a', '\x80', '\xff')
  const longer = fc.array(few_bytes, { minLength: 1, maxLength: 14 }).map((all) => all.join(''))
  const prefix = fc.constantFrom('', '\x00\x00\x00\x00', 'same beginning', '\xff'.repeat(9))
  const name = fc.tuple(prefix, longer).map((parts) => parts.join(''))
  it('are those of a map, for any bytes and lengths', () => {
    const changes = fc.array(fc.tuple(fc.oneof(key, name), value), { maxLength: 300 })
    fc.assert(
      fc.property(changes, fc.nat({ max: 20 }), (all, each) => assertSorted(all, each + 1)),
      { numRuns: process.env.CONVEYOR_SLOW === '1' ? 20_000 : 400 },
    )
  })

  const numbers = Array.from({ length: 3_000 }, (_, n) => n)
  const chosen: [what: string, keyOf: (n: number) => string][] = [
    ['ascending', (n) => `id ${String(n).padStart(8, '0')}`],
    ['descending', (n) => `id ${String(9_999 - n).padStart(8, '0')}`],
    ['all the same', () => 'counter'],
    ['two in turn', (n) => `counter ${n % 2}`],
    ['each a prefix of the next', (n) => 'a'.repeat(1 + (n % 1_500))],
    ['each a prefix of the one before', (n) => 'a'.repeat(1_500 - (n % 1_500))],
    ['zeros alone', (n) => '\x00'.repeat(1 + ((n * 7919) % 61))],
    ['keys that diverge at every byte', (n) => `${'a'.repeat(n % 1_000)}b${n}`],
    ['a long common prefix', (n) => 'p'.repeat(1_900) + ((n * 7919) % 3_001)],
  ]
  for (const [what, keyOf] of chosen) {
    it(`are those of a map: ${what}`, () => {
      assertSorted(numbers.map((n) => [keyOf(n), Buffer.from(String(n))]))
    })
  }
})

describe('a memtable', () => {
  it('reads as a map does, through several rounds', () => {
    const step = fc.oneof(
      { weight: 9, arbitrary: writes },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), bounds, (steps, range) => {
        const memtable = newMemtable()
        const model: Values = new Map()
        const [from, to, reverse] = range
        let seq = 0
        for (const next of steps) {
          if (next === 'clear') {
            memtable.clear()
            model.clear()
          } else {
            const changes = changesOf(next)
            const frame = Buffer.from(buildFrame(memtable, { id, seq: ++seq }, changes))
            assert.deepEqual(
              [...framesIn(frame)].map((one) => one.seq),
              [seq],
            )
            assert.deepEqual(
              copied(memtable.range(from, to, reverse)),
              copied(between(model, from, to, reverse)),
              'reads do not see a frame before it is published',
            )
            publishFrame(memtable, changes)
            for (const [name, bytes] of next) model.set(name, bytes)
          }
          assert.equal(memtable.size, model.size)
          assert.deepEqual(
            copied(memtable.range(from, to, reverse)),
            copied(between(model, from, to, reverse)),
          )
          for (const name of [...model.keys(), from, to]) {
            const [mine, theirs] = [memtable.get(name), model.get(name)]
            assert.ok(mine === theirs || (mine && theirs && mine.equals(theirs)), name)
          }
        }
      }),
    )
  })

  it('holds thousands of keys', () => {
    const memtable = newMemtable()
    const changes = newChangeBuffer()
    const model: Values = new Map()
    for (let n = 0; n < 40_000; n++) {
      const [name, bytes] = [`k${(n * 7919) % 30_011}`, Buffer.from(String(n))]
      changes.clear()
      changes.put(name, bytes)
      buildFrame(memtable, { id, seq: n }, changes)
      publishFrame(memtable, changes)
      model.set(name, bytes)
    }
    assert.equal(memtable.size, model.size)
    const all = [...memtable.range('k', 'l', false)]
    assert.deepEqual(
      all.map(({ key: name, value: bytes }) => `${name}=${bytes}`),
      between(model, 'k', 'l', false).map(({ key: name, value: bytes }) => `${name}=${bytes}`),
    )
  })
})

describe('a change buffer', () => {
  it('reads as a map does, with undo, through several rounds', () => {
    const step = fc.oneof(
      { weight: 9, arbitrary: fc.tuple(key, value) },
      { weight: 1, arbitrary: fc.constantFrom('mark' as const, 'undo' as const) },
      { weight: 1, arbitrary: fc.constant('clear' as const) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), bounds, (steps, [from, to, reverse]) => {
        const buffer = newChangeBuffer()
        let model: Values = new Map()
        let marked: Values = new Map()
        for (const next of steps) {
          if (next === 'mark') {
            buffer.mark()
            marked = new Map(model)
          } else if (next === 'undo') {
            buffer.undo()
            model = new Map(marked)
          } else if (next === 'clear') {
            buffer.clear()
            buffer.mark()
            model = new Map()
            marked = new Map()
          } else {
            buffer.put(...next)
            model.set(...next)
          }
          assert.deepEqual(
            copied(buffer.range(from, to, reverse)),
            between(model, from, to, reverse),
          )
          for (const name of [...model.keys(), from, to]) {
            const [mine, theirs] = [buffer.get(name), model.get(name)]
            assert.ok(mine === theirs || (mine && theirs && mine.equals(theirs)), name)
          }
        }
        assert.equal(buffer.size, model.size)
        assert.deepEqual([...buffer].map(([name]) => name).sort(), [...model.keys()].sort())
        const all = [...buffer].map(([name, bytes]) => ({ key: name, value: bytes }))
        assert.deepEqual(new Map(copied(all).map((one) => [one.key, one.value])), model)
        assert.equal(all.length, model.size)
      }),
    )
  })

  it('holds thousands of keys and large values, and shrinks again', () => {
    const buffer = newChangeBuffer()
    for (const [keys, end] of [
      [10_000, 'clear'],
      [3, 'reset'],
      [10_000, 'reset'],
      [3, 'clear'],
    ] as const) {
      const model: Values = new Map()
      for (let n = 0; n < 3 * keys; n++) {
        const [name, bytes] = [`k${(n * 7919) % keys}`, Buffer.alloc(n % 700, String(n))]
        buffer.put(name, bytes)
        model.set(name, bytes)
      }
      const found = [...buffer.range('k', 'l', false)]
      assert.deepEqual(copied(found), between(model, 'k', 'l', false))
      const bytes = buffer.arena().length
      buffer[end]()
      if (end === 'reset' && keys > 3) assert.ok(buffer.arena().length < bytes)
      assert.equal(buffer.get('k1'), undefined)
      assert.deepEqual([buffer.size, buffer.count(), buffer.bytes()], [0, 0, 0])
    }
  })
})

describe('a merged range', () => {
  it('takes each key from the first source that has it, and counts deleted keys', () => {
    fc.assert(
      fc.property(fc.array(writes, { maxLength: 4 }), bounds, (sources, [from, to, reverse]) => {
        const model: Values = new Map(sources.toReversed().flatMap((source) => [...source]))
        const counts = { deleted: 0 }
        const ranges = sources.map((source) => between(source, from, to, reverse))
        const expected = between(model, from, to, reverse)
        const there = expected.filter((change) => change.value !== null)
        assert.deepEqual([...mergedRange(ranges, reverse, counts)], there)
        assert.equal(counts.deleted, expected.length - there.length)
      }),
    )
  })

  it('closes its sources when it is broken off', () => {
    let open = 0
    function* source(): Generator<Change> {
      open++
      try {
        for (let n = 0; ; n++) yield { key: `k${n}`, value: null }
      } finally {
        open--
      }
    }
    const last: Change[] = [{ key: 'k2', value: Buffer.from('x') }]
    for (const entry of mergedRange([last, source(), source()], false)) {
      assert.deepEqual([entry.key, open], ['k2', 2])
      break
    }
    assert.equal(open, 0)
  })
})

it('a scan that begins within a gap begins at its end, until a key is put there', () => {
  const hints = newScanHints()
  hints.addGap('b', 'm', 100)
  const starts = ['a', 'b', 'c', 'l', 'm', 'z']
  assert.deepEqual(starts.map(hints.startOf), ['a', 'm', 'm', 'm', 'm', 'z'])
  hints.onPut('e')
  assert.deepEqual(starts.map(hints.startOf), ['a', 'e', 'e', 'l', 'm', 'z'])
})

describe('ranges that skip tombstones', () => {
  let folder: string
  let count = 0
  before(async () => {
    folder = await quickFolder('conveyor-parts-')
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const keys = 300
  const nameOf = (n: number): string => `q${String(n).padStart(4, '0')}`
  /** Often one of the first, so that deletes, puts and ranges meet. */
  const place = fc.oneof(fc.nat({ max: keys }), fc.nat({ max: 150 }), fc.constant(0))
  const step = fc.oneof(
    { weight: 2, arbitrary: fc.record({ step: fc.constant('put'), at: place }) },
    { weight: 3, arbitrary: fc.record({ step: fc.constant('del'), at: place, to: place }) },
    {
      weight: 6,
      arbitrary: fc.record({
        ...{ step: fc.constant('take'), to: fc.boolean(), limit: fc.constantFrom(1, 3, 400) },
        at: fc.oneof(fc.nat({ max: keys }), fc.constant(0)),
      }),
    },
  )
  for (const [what, bound, runs] of [
    ['without a checkpoint', {}, 40],
    ['with a checkpoint at all times', tiny_bounds, 6],
  ] as const) {
    it(`are correct ${what}`, async () => {
      const history = fc.array(step, { minLength: 20, maxLength: 40 })
      await fc.assert(
        fc.asyncProperty(history, async (steps) => {
          const tree = await openWithCommitLog(join(folder, `${count++}.lmdb`), bound)
          const model: Values = new Map()
          const write = async (changes: Values): Promise<void> => {
            await tree.commit(changesOf(changes))
            for (const [name, bytes] of changes) {
              if (bytes === null) model.delete(name)
              else model.set(name, bytes)
            }
          }
          const all = Array.from({ length: keys }, (_, n) => nameOf(n))
          await write(new Map(all.map((name) => [name, Buffer.from('first')])))
          for (const next of steps) {
            if (next.step === 'put') await write(new Map([[nameOf(next.at), Buffer.from('put')]]))
            else if (next.step === 'del') {
              const gone = all.slice(Math.min(next.at, next.to), Math.max(next.at, next.to))
              if (gone.length > 0) await write(new Map(gone.map((name) => [name, null])))
            } else {
              const to = next.to ? 'r' : nameOf(next.at + 120)
              const found: string[] = []
              for (const entry of tree.range(nameOf(next.at), to, false)) {
                if (found.push(entry.key) >= next.limit) break
              }
              const expected = between(model, nameOf(next.at), to, false)
              assert.deepEqual(
                found,
                expected.slice(0, next.limit).map((entry) => entry.key),
              )
            }
          }
          await tree.close()
        }),
        { numRuns: process.env.CONVEYOR_SLOW === '1' ? 500 : runs },
      )
    })
  }
})
