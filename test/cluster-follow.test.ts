/**
 * When a standby takes the ownership over, and how long an owner may answer: each decision, with a
 * clock that the test moves and a database that says what the test wants.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Connection, Query } from '../src/cluster/database/connection.ts'
import { type Following, follow, takeoverWaitMs } from '../src/cluster/ownership/follow.ts'
import { type LeaseOptions, newLease } from '../src/cluster/ownership/lease.ts'
import type { OwnerRow } from '../src/cluster/ownership/owner-row.ts'
import { onNextTurn } from '../src/core/clock.ts'
import { fault } from '../src/core/faults.ts'
import { fakeClock } from './support/fake-clock.ts'

const lease_ms = 1_000
const wait_ms = takeoverWaitMs(lease_ms)
const log_id = Buffer.alloc(8, 1)

const of_another: OwnerRow = {
  ...{ log_id, epoch: 4, renewal: 9, node: 'a', address: 'a:1', lease_ms, released: false },
  ...{ hand_over_to: '', file_id: 'file-a', boot_id: 'boot-a' },
}
const of_this = { ...of_another, node: 'b', file_id: 'file-b', boot_id: 'boot-b' }

/** What happens at a time: the row that is there from now on, or a database that is away. */
type Step = readonly [at_ms: number, row: Partial<OwnerRow> | 'away' | 'lost answer']

/** A connection to a database that has one row and no frames. */
function scripted(state: { row: OwnerRow; is_away: boolean; loses_answer: boolean }): Connection {
  return {
    async query(query: Query) {
      if (state.is_away) throw fault('overloaded', 'connection refused')
      const rows: unknown[] = []
      let rowCount = 0
      if (query.name === 'owner') {
        rows.push({ ...state.row, epoch: String(state.row.epoch), renewal: `${state.row.renewal}` })
      } else if (query.text.includes('SET epoch = epoch + 1')) {
        const [, epoch, renewal] = query.values ?? []
        if (state.row.epoch === epoch && state.row.renewal === renewal) {
          rowCount = 1
          const { row } = state
          state.row = { ...of_this, epoch: row.epoch + 1, renewal: row.renewal + 1 }
        }
        if (state.loses_answer) {
          state.loses_answer = false
          throw fault('overloaded', 'connection reset')
        }
      }
      return { rows, rowCount } as never
    },
    connect: async () => {},
    inTransaction: () => Promise.reject(new Error('not asked for')),
    close: async () => {},
  }
}

/** At which time, in steps of 50 ms, the node b takes over; undefined before the time is over. */
async function takenAt(
  first: OwnerRow,
  { steps = [], is_fit = true }: { readonly steps?: readonly Step[]; readonly is_fit?: boolean },
): Promise<readonly [at_ms: number, epoch: number] | undefined> {
  const clock = fakeClock(0)
  const state = { row: first, is_away: false, loses_answer: false }
  let has_left = false
  const following: Following = {
    ...{ connection: scripted(state), clock, log_id },
    claimant: {
      ...{ partition: 0, node: 'b', address: 'b:1', lease_ms, version: '1' },
      ...{ file_id: 'file-b', boot_id: 'boot-b' },
    },
    seq: () => 0,
    take: async () => {},
    isEligible: async () => is_fit,
    onSeen: async () => {},
    onAway() {},
    onBack() {},
    left: new Promise(() => {}),
    hasLeft: () => has_left,
  }
  let taken: Awaited<ReturnType<typeof follow>> | undefined
  const followed = follow(following).then(
    (end) => {
      taken = end
    },
    ({ code }) => assert.equal(code, 'shutting_down'),
  )
  for (let at_ms = 0; at_ms <= 5_000; at_ms += 50) {
    for (const [when_ms, change] of steps) {
      if (when_ms !== at_ms) continue
      state.is_away = change === 'away'
      if (change === 'lost answer') state.loses_answer = true
      else if (change !== 'away') state.row = { ...state.row, ...change }
    }
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => onNextTurn(resolve))
    if (taken !== undefined) break
    clock.advance(50)
  }
  has_left = true
  const answer = taken
  for (let turn = 0; turn < 20 && taken === undefined; turn++) {
    clock.advance(1_000)
    await new Promise((resolve) => onNextTurn(resolve))
  }
  await followed
  return typeof answer === 'object' ? [answer.taken_ms, answer.epoch] : undefined
}

const renewals = [500, 1_000, 1_500].map((at_ms, n): Step => [at_ms, { renewal: 10 + n }])

test('a standby takes over when the rules allow it, and at no other time', async (t) => {
  // biome-ignore format: a table
  const rows: readonly (readonly [
    what: string, row: OwnerRow, steps: readonly Step[], taken: number | undefined, epoch?: number,
  ])[] = [
    ['a row that nobody has had', { ...of_another, epoch: 0, node: '', released: true, lease_ms: 0 }, [], 0, 1],
    ['a row that was released', { ...of_another, released: true }, [], 0, 5],
    ['released while it is followed', of_another, [[300, { released: true, renewal: 10 }]], 300, 5],
    ['handed over to this node', { ...of_another, released: true, hand_over_to: 'b' }, [], 0],
    ['handed over to any other', { ...of_another, released: true, hand_over_to: '*' }, [], 0],
    ['handed over to another', { ...of_another, released: true, hand_over_to: 'c' }, [], wait_ms],
    ['the former owner holds off', { ...of_this, released: true, hand_over_to: '*' }, [], wait_ms],
    ['the former owner, released for nobody', { ...of_this, released: true }, [], 0],
    ['its own row after a restart', of_this, [], 0],
    ['its own row after the machine has started anew', { ...of_this, boot_id: 'x' }, [], wait_ms],
    ['its own name with another file', { ...of_this, file_id: 'x' }, [], wait_ms],
    ['its own row, and the system does not say when it started', { ...of_this, boot_id: '' }, [], wait_ms],
    ['a row that stands still', of_another, [], wait_ms],
    ['of an owner with a longer lease', { ...of_another, lease_ms: 3_000 }, [], takeoverWaitMs(3_000)],
    ['renewed meanwhile', of_another, renewals, 1_500 + wait_ms],
    ['another owner meanwhile', of_another, [[500, { epoch: 5, node: 'c', renewal: 10 }]], 500 + wait_ms, 6],
    ['the database away in between', of_another, [[500, 'away'], [800, {}]], 900 + wait_ms],
    ['the answer to the takeover is lost twice', { ...of_another, released: true }, [[0, 'lost answer'], [100, 'lost answer']], 400, 7],
    ['the answer to the takeover is lost', { ...of_another, released: true }, [[0, 'lost answer']], 200, 6],
  ]
  for (const [what, row, steps, at_ms, epoch] of rows) {
    await t.test(what, async () => {
      const taken = await takenAt(row, { steps })
      // It looks each 50 ms.
      assert.equal(taken && Math.floor(taken[0] / 50), at_ms && Math.ceil(at_ms / 50))
      if (epoch !== undefined) assert.equal(taken?.[1], epoch)
    })
  }
  await t.test('a node that could not be the owner takes nothing', async () => {
    assert.equal(await takenAt({ ...of_another, released: true }, { is_fit: false }), undefined)
  })
})

/** An owner's lease, and what it has told. */
function leaseOn(clock: ReturnType<typeof fakeClock>) {
  const told: string[] = []
  const state = { epoch: 5, is_away: false, hand_over_to: '', took_ms: 0 }
  const connection: Connection = {
    async query() {
      if (state.is_away) throw fault('overloaded', 'connection refused')
      clock.set(clock.now_ms() + state.took_ms)
      const rows = state.epoch === 5 ? [{ hand_over_to: state.hand_over_to }] : []
      return { rows, rowCount: rows.length } as never
    },
    connect: async () => {},
    inTransaction: () => Promise.reject(new Error('not asked for')),
    close: async () => {},
  }
  const options: LeaseOptions = {
    ...{ connection, clock, partition: 0, epoch: 5, lease_ms, taken_ms: clock.now_ms() },
    onHandOver: () => void told.push('hand over'),
    onSlow: (ms) => void told.push(`slow: ${ms}`),
    onAway: () => void told.push('away'),
    onBack: () => void told.push('back'),
  }
  const lease = newLease(options)
  lease.onLost(({ message }) => void told.push(`lost: ${message}`))
  return { lease, state, told }
}

async function pass(clock: ReturnType<typeof fakeClock>, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 10) {
    clock.advance(10)
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => onNextTurn(resolve))
  }
}

test('an owner may answer for a lease after it has sent a renewal that succeeded', async () => {
  const clock = fakeClock(0)
  const { lease, state, told } = leaseOn(clock)
  await pass(clock, 3_000)
  assert.equal(lease.isValid(), true)
  state.is_away = true
  await pass(clock, lease_ms + 10)
  assert.equal(lease.isValid(), false)
  state.is_away = false
  await pass(clock, 200)
  assert.equal(lease.isValid(), true, 'it goes on by itself')
  assert.deepEqual(told, ['away', 'back'])
  state.hand_over_to = '*'
  await pass(clock, lease_ms)
  assert.deepEqual(told, ['away', 'back', 'hand over'])
  state.epoch = 6
  await pass(clock, lease_ms)
  assert.equal(lease.isValid(), false)
  assert.equal(told.at(-1), 'lost: another node owns the data now')
  assert.equal(clock.nextWake_ms(), undefined)
})

test('a lease counts from before the renewal was sent, and says that it is tight', async () => {
  const clock = fakeClock(0)
  const { lease, state, told } = leaseOn(clock)
  state.took_ms = 600
  await pass(clock, 350)
  assert.deepEqual(told, ['slow: 600'])
  state.is_away = true
  const answered_ms = clock.now_ms()
  await pass(clock, lease_ms - 600)
  assert.equal(lease.isValid(), false, `not for ${lease_ms} ms after the answer at ${answered_ms}`)
  lease.close()
})

test('a release gives up after the lease where the database is away', async () => {
  const clock = fakeClock(0)
  const { lease, state } = leaseOn(clock)
  state.is_away = true
  let is_released = false
  const released = lease.release().then(() => {
    is_released = true
  })
  assert.equal(lease.isValid(), false, 'no read is answered any more')
  await pass(clock, lease_ms - 100)
  assert.equal(is_released, false)
  await pass(clock, 200)
  await released
})
