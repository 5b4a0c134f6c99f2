/**
 * The checks of `doctor` on a cluster, if its database is named: the database and its promises, the
 * owner, the standbys, and whether the data file is a node's of this cluster.
 */
import type { ClusterStatus } from '../../cluster/operator/cluster-status.ts'
import { bytesText, spanText } from '../text.ts'
import { bad, type Check, ok, type Verdict, warn } from './check.ts'
import type { Facts } from './facts.ts'

const lag_max = 10_000

type Judge = (status: ClusterStatus, facts: Facts) => Verdict | readonly Verdict[] | undefined

const withStatus =
  (judge: Judge): Check['judge'] =>
  (facts) =>
    facts.cluster?.status && judge(facts.cluster.status, facts)

function membersVerdicts({ members }: ClusterStatus): Verdict[] {
  const gone = members.filter(({ role }) => role === 'gone')
  const behind = members.filter(({ role, lag }) => role === 'standby' && lag > lag_max)
  const standbys = members.filter(({ role }) => role === 'standby')
  const verdicts = [
    ...gone.map(({ node, seen_s_ago }) =>
      warn(
        `${node} has not been seen for ${spanText(1000 * seen_s_ago)}`,
        `start it, or \`npx conveyor cluster remove ${node}\` if it is gone for good`,
      ),
    ),
    ...behind.map(({ node, lag }) =>
      warn(
        `${node} is ${lag} positions behind`,
        'look at its disk and its connection to the database',
      ),
    ),
    ...standbys.flatMap(({ node, unfit }) =>
      unfit === null ? [] : [bad(`${node} could not be the owner`, unfit)],
    ),
    ...(standbys.length > 0 ? [] : [warn('there is no standby', 'start another node')]),
  ]
  if (verdicts.length > 0) return verdicts
  return [ok(`${members.map(({ node }) => node).join(', ')} are there, and none is far behind`)]
}

export const clusterChecks: readonly Check[] = [
  {
    name: 'database',
    looks_at: 'whether the database of --commit-log answers, with the rights and the schema',
    judge({ cluster }) {
      if (cluster === undefined) return undefined
      const { fault, status, answer_ms } = cluster
      if (fault !== undefined) return bad(fault, 'follow the sentence; the nodes need the same')
      return ok(`PostgreSQL ${status?.database.version} answers, connected in ${answer_ms} ms`)
    },
  },
  {
    name: 'durable',
    looks_at: 'where an answered op is durable, by the settings of the database',
    judge: withStatus(({ durable, risk }) =>
      risk === null ? ok(durable) : bad(risk, 'a node refuses such a database'),
    ),
  },
  {
    name: 'database clock',
    looks_at: 'how far its clock is off this one, which decides nothing',
    judge: withStatus((_status, { cluster }) => {
      const ms = cluster?.ahead_ms ?? 0
      return ok(`${spanText(ms)} ${ms < 0 ? 'behind' : 'ahead'}; no node goes by it`)
    }),
  },
  {
    name: 'owner',
    looks_at: 'which node owns the data, and whether it gives a sign',
    judge: withStatus(({ owner, epoch }) => {
      if (owner === null) return bad('no node owns the data', 'start one; its log says why not')
      const { node, address, since, is_alive } = owner
      if (is_alive)
        return ok(`${node}${address && ` at ${address}`} since ${since}, epoch ${epoch}`)
      return bad(`${node} does not renew its lease`, 'a standby takes over; look at its log')
    }),
  },
  {
    name: 'members',
    looks_at: 'whether all nodes are there, and how far behind',
    judge: withStatus(membersVerdicts),
  },
  {
    name: 'snapshot',
    looks_at: 'the newest snapshot, and the log after it',
    judge: withStatus(({ snapshot, log, position }) => {
      const after = `${bytesText(log.bytes)} of log`
      if (snapshot === null) return ok(`there is none yet, and ${after}`)
      const { age_s, bytes, position: at } = snapshot
      const is = `${spanText(1000 * age_s)} old, ${bytesText(bytes)}`
      return ok(`${is}, ${position - at} positions back; ${after}`)
    }),
  },
  {
    name: 'node file',
    looks_at: 'whether the data file is the copy of a node of this cluster',
    judge: withStatus((status, { node_mark: mark, db }) => {
      if (mark === undefined) return undefined
      const is_same = mark.cluster_id === status.cluster && mark.partition === status.partition
      if (is_same) return ok(`${db} is the copy of a node of it`)
      return bad(
        `${db} is the copy of a node of another cluster or partition`,
        'name a new file for this node, or that cluster’s database',
      )
    }),
  },
]
