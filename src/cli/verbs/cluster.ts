/**
 * `cluster …`: makes the schema of a cluster in its database, shows its status, and changes its
 * owner. The verbs use the database alone; the password comes from where libpq takes it, never from
 * an argument.
 */
import { existsSync } from 'node:fs'
import { type Connection, isAway } from '../../cluster/database/connection.ts'
import { initCluster } from '../../cluster/database/schema.ts'
import { type ClusterStatus, clusterStatus } from '../../cluster/operator/cluster-status.ts'
import { handOver, operatorConnection, removeNode } from '../../cluster/operator/commands.ts'
import { detachFile } from '../../cluster/operator/detach-file.ts'
import { importFile } from '../../cluster/operator/import-file.ts'
import { steadyClock, systemChance } from '../../core/clock.ts'
import { defined } from '../../core/defined.ts'
import { fault, isFault } from '../../core/faults.ts'
import { checkFormat, formatIn } from '../../engine/file/format.ts'
import type { View } from '../../store/store.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { isConfirmed } from '../io.ts'
import { printDone } from '../output.ts'
import { commit_log_flag, partition_flag, wholeNumber } from '../serve/flags.ts'
import { bytesText, clean, fields, linesText, spanText, table } from '../text.ts'
import { dbOf, flag, type Given, isOn, json_flag, text, type Verb, verbOf, word } from '../verb.ts'

const flags = [commit_log_flag, partition_flag, json_flag]
const password_note = 'The password comes from PGPASSWORD, or from the file that PGPASSFILE names.'

const detachVerb = fileVerb('cluster detach', {
  flags: [flag('yes', 'detach without asking for the position', { no_env: true }), commit_log_flag],
  says: 'make the data file of a stopped node open alone, where its database is lost',
  notes: [
    'Refused while the database has all that the file has. The file keeps its tasks and its key;',
    'no node starts with it again. It lacks what was committed after its position: take the file',
    'with the highest position, which `doctor` prints for each, and start no other node.',
  ],
  run: (given, io) =>
    withDatabase(given, async (connection) => {
      const path = dbOf(given)
      const made = await detachFile(connection, path, async ({ has, position, reason }) => {
        if (isOn(given, 'yes')) return true
        const says = `${reason}\n${path} has ${has}; it lacks what came after that.\n`
        const warns = 'From now on start no other node, even if the database comes back.\n'
        return isConfirmed(io, `${says}${warns}Type the position to detach it: `, position)
      })
      if (made === undefined) return exits.refused
      return printDone(given, io, made, `${clean(path)} opens alone, with ${made.has}\n`)
    }),
})

export const clusterVerbs: readonly Verb[] = [
  verbOf('cluster init', {
    flags: [flag('role NAME', 'give this role the rights of a node', { no_env: true }), ...flags],
    says: 'make the schema of a cluster in its database, or bring it up to date',
    notes: ['What is there already stays as it is.', password_note],
    run: (given, io) =>
      withDatabase(given, async (connection, partition) => {
        const [id, log_id] = [systemChance.bytes(16), systemChance.bytes(8)]
        const role = text(given, 'role')
        const made = await initCluster(connection, { id, log_id, partition, role })
        const says = made.was_there ? 'was there already' : 'is there now'
        const granted = role === undefined ? '' : `, and ${clean(role)} has the rights of a node`
        const result = { partition, ...made, ...defined({ granted_to: role }) }
        return printDone(given, io, result, `the cluster ${says}${granted}\n`)
      }),
  }),
  verbOf('cluster status', {
    flags,
    says: 'show the owner, the nodes and how far behind they are, and where an answer is durable',
    notes: ['Watches for up to two thirds of the lease whether the owner renews it.'],
    run: (given, io) =>
      withDatabase(given, async (connection, partition) => {
        const status = await clusterStatus(connection, partition, steadyClock).catch((error) => {
          if (!isAway(error)) throw error
          const helps = `\`npx conveyor doctor --db FILE\` says what the file of a node has`
          throw fault('overloaded', `${error.message}; ${helps}`)
        })
        return printDone(given, io, status, pageOf(status))
      }),
  }),
  verbOf('cluster hand-over', {
    flags: [flag('to NODE', 'the node to be the owner (default any)', { no_env: true }), ...flags],
    says: 'make another node the owner, after the requests under way',
    notes: ['Prints how long it took, or why it is not possible; then nothing changes.'],
    run: (given, io) =>
      withDatabase(given, async (connection, partition) => {
        const asked = { partition, clock: steadyClock, to: text(given, 'to') }
        const { from, to, epoch, ms } = await handOver(connection, asked)
        const says = `${to} is the owner after ${from}, in ${ms} ms\n`
        return printDone(given, io, { from, to, epoch, ms }, says)
      }),
  }),
  verbOf('cluster remove NODE', {
    flags,
    says: 'remove a node that is gone, so that no log is kept for it',
    notes: ['A running node is not removed. A removed node may join again.'],
    run: (given, io) =>
      withDatabase(given, async (connection, partition) => {
        const node = word(given, 0)
        await removeNode(connection, { partition, clock: steadyClock, node })
        return printDone(given, io, { removed: node }, `${clean(node)} is removed\n`)
      }),
  }),
  fileVerb('cluster import', {
    flags: flags.slice(0, 2),
    says: 'write the state of a closed data file into an empty partition',
    notes: [
      'The file is only read; the nodes start with new files. The key of the secrets is not in it:',
      'copy FILE.key beside the data file of each node. The file of a stopped node is accepted if',
      'its own database is lost.',
    ],
    run: (given, io) =>
      withDatabase(given, async (connection, partition) => {
        const path = dbOf(given)
        const made = await importFile(connection, path, { partition, check: checkImported })
        const key = existsSync(`${path}.key`)
          ? `each node needs ${clean(path)}.key as the key of its own data file\n`
          : ''
        return printDone(given, io, made, `position ${made.seq}, ${made.bytes} bytes\n${key}`)
      }),
  }),
  detachVerb,
]

/** Throws for a file of another program or format. */
function checkImported(file: Pick<View, 'get'>): void {
  const found = formatIn(file)
  if (found === undefined) throw fault('not_a_database', 'this is no data file of conveyor')
  checkFormat(found, 'the file')
}

async function withDatabase(
  given: Given,
  use: (connection: Connection, partition: number) => Promise<Exit>,
): Promise<Exit> {
  const partition = wholeNumber('partition', text(given, 'partition') ?? '0')
  const connection = connectionOf(given)
  try {
    return await use(connection, partition)
  } finally {
    await connection.close()
  }
}

function connectionOf(given: Given): Connection {
  const url = text(given, 'commit-log')
  if (url === undefined) {
    throw usageError('name the database: --commit-log URL, or CONVEYOR_COMMIT_LOG')
  }
  try {
    return operatorConnection(url, given.verb.name)
  } catch (error) {
    throw isFault(error) ? usageError(error.message) : error
  }
}

function pageOf(status: ClusterStatus): string {
  const { owner, epoch, position, members, log, snapshot, database } = status
  const at = owner?.address ? ` at ${owner.address}` : ''
  const lines: [label: string, value: string][] = [
    ['owner', owner === null ? 'none' : `${owner.node}${at}, since ${owner.since}`],
    ['epoch', String(epoch)],
    ['position', String(position)],
    ['log', `${log.frames} frames, ${bytesText(log.bytes)}`],
    [
      'snapshot',
      snapshot === null
        ? 'none'
        : `position ${snapshot.position}, ${bytesText(snapshot.bytes)}, ` +
          `${spanText(1000 * snapshot.age_s)} old`,
    ],
    ['database', `PostgreSQL ${database.version}`],
    ['durable', status.durable],
  ]
  const rows = members.map((one) => [
    ...[one.node, one.role, one.address],
    ...[String(one.position), String(one.lag), one.version],
    spanText(1000 * one.seen_s_ago),
  ])
  const heads = ['NODE', 'ROLE', 'ADDRESS', 'POSITION', 'LAG', 'VERSION', 'SEEN']
  const warnings = linesText(status.warnings.map((warning) => `warning: ${warning}`))
  return `${fields(lines)}${rows.length === 0 ? '' : '\n'}${table(heads, rows)}${warnings}`
}
