/**
 * A database of several hosts whose log ends before what a node has: for a while it may be a primary
 * that a failover has left behind.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPlaceFinder } from '../src/cluster/node/file.ts'
import type { NodeSettings } from '../src/cluster/node/settings.ts'

/** [hosts, at each second: the end of the log, and what is answered] */
const rows: readonly (readonly [number, readonly (readonly [number, number, string])[]])[] = [
  [1, [[0, 4, 'not_possible']]],
  [3, [[0, 5, 'behind']]],
  [
    3,
    [
      [0, 4, 'overloaded'],
      [10, 4, 'overloaded'],
      [21, 4, 'not_possible'],
    ],
  ],
  [
    3,
    [
      [0, 4, 'overloaded'],
      [60, 4, 'overloaded'],
      [75, 5, 'behind'],
      [85, 4, 'overloaded'],
    ],
  ],
]

for (const [hosts, looks] of rows) {
  test(`${hosts} hosts: ${looks.map(([s, last, says]) => `${says} at ${s} s for ${last}`)}`, async () => {
    let now_ms = 0
    const clock = { now_ms: () => now_ms }
    const settings = { clock, database: { hosts: Array.from({ length: hosts }) } }
    const placeInLog = newPlaceFinder(settings as unknown as NodeSettings)
    for (const [at_s, last, says] of looks) {
      now_ms = at_s * 1_000
      const found = { crc: null, first: '1', last: String(last) }
      const connection = { query: async () => ({ rows: [found] }) } as never
      const place = placeInLog(connection, 0, { seq: 5, last_crc: 1 }, 'file')
      assert.equal(await place.catch(({ code }: { code: string }) => code), says)
    }
  })
}
