/**
 * Who has the name of a node: the instance whose beat moves, by a clock that the test moves and a
 * table that the test keeps.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Connection, Query } from '../src/cluster/database/connection.ts'
import { register, unchanged_ms_max } from '../src/cluster/node/rows.ts'
import { onNextTurn } from '../src/core/clock.ts'
import { type Fault, fault } from '../src/core/faults.ts'
import { fakeClock } from './support/fake-clock.ts'

interface Row {
  instance: string
  beat: number
  seq: number
}

interface Table {
  row: Row | undefined
  is_away: boolean
}

/** The row of the one name that is asked for. */
function connectionTo(table: Table): Connection {
  return {
    async query({ text, values = [] }: Query) {
      if (table.is_away) throw fault('overloaded', 'connection refused')
      const { row } = table
      const [, , instance, ...rest] = values as [number, string, string, ...unknown[]]
      const write = (seq: unknown, name = instance): { rowCount: number } => {
        table.row = { instance: name, beat: (row?.beat ?? 0) + 1, seq: Number(seq) }
        return { rowCount: 1 }
      }
      const none = { rowCount: 0 }
      let result: object = none
      if (text.startsWith('SELECT')) {
        result = { rows: row ? [{ ...row, beat: String(row.beat), address: 'x:1' }] : [] }
      } else if (text.startsWith('INSERT')) {
        result = row === undefined ? write(rest[2]) : none
      } else if (text.includes('instance = $7')) {
        const is_same = row?.instance === rest[3] && String(row?.beat) === rest[4]
        result = is_same ? write(rest[2]) : none
      } else if (row?.instance === instance) {
        result = write(rest[0], text.includes("instance = ''") ? '' : instance)
      }
      return result as never
    },
    inTransaction: () => Promise.reject(new Error('not asked for')),
    connect: async () => {},
    close: async () => {},
  }
}

async function begin(table: Table, beats = false) {
  const clock = fakeClock(0)
  let taken: Fault | undefined
  const registered = register({
    ...{ connection: connectionTo(table), clock, partition: 0, node: 'a', address: 'a:1', seq: 7 },
    ...{ holder: 'file/boot', start_id: 'me', left: new Promise(() => {}), hasLeft: () => false },
    unfit: () => '',
    reached: () => 7,
    onTaken(reason) {
      taken = reason
    },
    onAway() {},
    onBack() {},
  })
  const ended: { at_ms?: number; error?: Fault } = {}
  registered.then(
    () => {
      ended.at_ms ??= clock.now_ms()
    },
    (error: Fault) => {
      ended.error = error
    },
  )
  async function pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 50) {
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => onNextTurn(resolve))
      clock.advance(50)
      if (beats && table.row !== undefined && clock.now_ms() % 1_000 === 0) table.row.beat++
    }
  }
  return { registered, ended, pass, taken: () => taken }
}

// biome-ignore format: a table
const rows: readonly (readonly [
  what: string, row: Row | undefined, beats: boolean, expected: number | 'refused',
])[] = [
  ['a new name', undefined, false, 0],
  ['a name after a clean end', { instance: '', beat: 9, seq: 5 }, false, 0],
  ['its own name after a restart', { instance: 'file/boot/before', beat: 9, seq: 5 }, false, 0],
  ['a name whose node runs', { instance: 'other/boot/x', beat: 9, seq: 5 }, true, 'refused'],
  ['a name that stands still', { instance: 'other/boot/x', beat: 9, seq: 5 }, false, unchanged_ms_max],
]

test('a name belongs to the instance whose beat moves', async (t) => {
  for (const [what, row, beats, expected] of rows) {
    await t.test(what, async () => {
      const table: Table = { row, is_away: false }
      const { pass, ended } = await begin(table, beats)
      await pass(unchanged_ms_max + 1_000)
      if (expected !== 'refused') {
        assert.equal(ended.at_ms, expected)
        assert.equal(table.row?.instance, 'file/boot/me')
        assert.equal(table.row?.seq, 7)
        return
      }
      assert.equal(ended.error?.code, 'not_possible')
      assert.match(
        ended.error?.message ?? '',
        /^another node is named a and runs at x:1: give each/,
      )
      assert.equal(table.row?.instance, 'other/boot/x')
    })
  }
})

test('a member beats, tells its position, and frees its name at the end', async () => {
  const table: Table = { row: undefined, is_away: false }
  const rowNow = (): Row | undefined => table.row
  const { registered, pass } = await begin(table)
  await pass(100)
  const registration = await registered
  const before = table.row?.beat ?? 0
  registration.report(12)
  await pass(3_000)
  assert.equal(table.row?.seq, 12)
  assert.ok((table.row?.beat ?? 0) >= before + 2)
  table.is_away = true
  await pass(5_000)
  table.is_away = false
  table.row = undefined
  await pass(1_500)
  assert.equal(rowNow()?.instance, 'file/boot/me', 'a row that was removed')
  await registration.leave()
  assert.deepEqual([rowNow()?.instance, rowNow()?.seq], ['', 12])
})

test('a node whose name another instance has taken says so', async () => {
  const table: Table = { row: undefined, is_away: false }
  const { registered, pass, taken } = await begin(table)
  await pass(100)
  const registration = await registered
  table.row = { instance: 'other/boot/x', beat: 1, seq: 0 }
  await pass(1_500)
  assert.match(taken()?.message ?? '', /^another node is named a/)
  await registration.leave()
  assert.equal(table.row.instance, 'other/boot/x')
})
