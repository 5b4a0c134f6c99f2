/**
 * Operator commands on a cluster, through its database: hand over the ownership, and remove a node
 * that is gone. The owner reads a request to hand over from its row at the next renewal.
 */
import { type Clock, pause, steadyClock } from '../../core/clock.ts'
import { fault } from '../../core/faults.ts'
import { type Connection, newConnection } from '../database/connection.ts'
import { databaseOf } from '../database/url.ts'
import { firstAlive, readNodes, removeNodeRow } from '../node/rows.ts'
import { takeoverWaitMs } from '../ownership/follow.ts'
import { type OwnerRow, readOwnerRow } from '../ownership/owner-row.ts'
import { givesSign, isSeen } from './cluster-status.ts'

const answer_ms_max = 10_000

/** Accepts unsafe database settings. Throws `not_possible` for an invalid url. */
export function operatorConnection(url: string, purpose: string): Connection {
  const database = databaseOf(url, 'operator', true)
  return newConnection({ database, purpose, clock: steadyClock, answer_ms_max })
}

export interface HandedOver {
  readonly from: string
  readonly to: string
  readonly epoch: number
  /** From the request to the takeover. */
  readonly ms: number
}

interface Asked {
  readonly partition: number
  readonly clock: Clock
}

interface HandOver extends Asked {
  readonly to?: string | undefined
}

const poll_ms = 20
/** Added to the time of a takeover, for the owner to drain. */
const drain_ms_max = 60_000

/**
 * Resolves once another node (`to`, if given) owns the partition. Otherwise withdraws the request
 * and rejects with `not_possible`.
 */
export async function handOver(
  connection: Connection,
  { partition, clock, to }: HandOver,
): Promise<HandedOver> {
  const row = await readOwnerRow(connection, partition)
  if (row.released || row.node === '')
    throw fault('not_possible', 'no node owns the data now: start one')
  if (row.node === to) throw fault('not_possible', `${to} is the owner already`)
  await checkStandby(connection, { partition, clock, to }, row)
  const began_ms = clock.now_ms()
  await request(connection, partition, row.epoch, to ?? '*')
  const until_ms = began_ms + takeoverWaitMs(row.lease_ms) + drain_ms_max
  // A living owner reads the request with its next renewal.
  if (!(await givesSign(connection, partition, row, clock))) {
    await request(connection, partition, row.epoch, '')
    const helps = 'a standby takes over by itself once its lease has run out'
    throw fault('not_possible', `the owner ${row.node} gives no sign: ${helps}`)
  }
  for (;;) {
    const now = await readOwnerRow(connection, partition)
    if (now.epoch !== row.epoch) return ended(row, now, to, clock.now_ms() - began_ms)
    if (clock.now_ms() >= until_ms) break
    await pause(clock, poll_ms)
  }
  await request(connection, partition, row.epoch, '')
  const says = `the owner ${row.node} has not handed over in ${Math.round(drain_ms_max / 1000)} s`
  throw fault('not_possible', `${says}, so the request is withdrawn: look at its log`)
}

function ended(row: OwnerRow, now: OwnerRow, to: string | undefined, ms: number): HandedOver {
  if (now.node === row.node) {
    const says = `no standby has taken over, and ${row.node} is the owner again`
    throw fault('not_possible', `${says}: look at the logs of the standbys`)
  }
  if (to !== undefined && now.node !== to) {
    const says = `${now.node} has taken over, and not ${to}`
    throw fault('not_possible', `${says}: look at the log of ${to}`)
  }
  return { from: row.node, to: now.node, epoch: now.epoch, ms: Math.round(ms) }
}

async function request(
  connection: Connection,
  partition: number,
  epoch: number,
  to: string,
): Promise<void> {
  await connection.query({
    text: 'UPDATE conveyor.owner SET hand_over_to = $3 WHERE partition = $1 AND epoch = $2',
    values: [partition, epoch, to],
  })
}

/** Throws unless a running standby can take over at once. */
async function checkStandby(
  connection: Connection,
  { partition, clock, to }: HandOver,
  { node: owner }: OwnerRow,
): Promise<void> {
  const others = (await readNodes(connection, partition)).filter(({ node }) => node !== owner)
  const seen = others.filter(isSeen)
  if (seen.length === 0) {
    throw fault('not_possible', 'there is no standby that could take over: start another node')
  }
  const wanted = to === undefined ? seen : seen.filter(({ node }) => node === to)
  const names = seen.map(({ node }) => node)
  if (to !== undefined && wanted.length === 0) {
    throw fault('not_possible', `${to} is no standby: name one of ${names.join(', ')}`)
  }
  const ready = wanted.filter(({ unfit }) => unfit === '')
  const [{ node, unfit } = { node: '', unfit: '' }] = wanted
  if (ready.length === 0) throw fault('not_possible', `${node} could not be the owner: ${unfit}`)
  if ((await firstAlive(connection, partition, ready, clock)) !== undefined) return
  const silent = ready.map((one) => one.node).join(', ')
  throw fault('not_possible', `no standby gives a sign (${silent}): look at its log, or start it`)
}

/**
 * Removes a node's row, so that the log is not kept for it; the node may join again. Rejects with
 * `not_possible` for a running or unknown node.
 */
export async function removeNode(
  connection: Connection,
  { partition, clock, node }: Asked & { readonly node: string },
): Promise<void> {
  const row = await readOwnerRow(connection, partition)
  if (row.node === node && !row.released && (await givesSign(connection, partition, row, clock))) {
    const helps = 'run `npx conveyor cluster hand-over` first'
    throw fault('not_possible', `${node} is the owner: ${helps}`)
  }
  const nodes = await readNodes(connection, partition)
  const found = nodes.filter((one) => one.node === node)
  const is_alive =
    found.some(isSeen) && (await firstAlive(connection, partition, found, clock)) !== undefined
  // Its next beat would add the row again.
  if (is_alive) throw fault('not_possible', `${node} runs: stop it first`)
  if (await removeNodeRow(connection, partition, node)) return
  const known = nodes.map((one) => one.node)
  const there = known.length === 0 ? 'there is none' : `name one of ${known.join(', ')}`
  throw fault('not_possible', `no node ${node} is known: ${there}`)
}
