/**
 * The `process` verbs: import, export, list, show, share, pause and remove processes.
 */

import type { Can } from '../../engine/api.ts'
import type { AdminValue } from '../../server/admin/verbs.ts'
import { withAdmin } from '../admin-connection.ts'
import { mermaidOf } from '../diagram/mermaid.ts'
import { svgOf } from '../diagram/svg.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { decodeText, type Io, print, readInput } from '../io.ts'
import {
  clean,
  columns,
  idJson,
  jsonOf,
  printDone,
  printLines,
  printList,
  table,
} from '../output.ts'
import { db_flag, type Given, isOn, json_flag, list, text, type Verb, word } from '../verb.ts'

const flags = [db_flag, json_flag]
const id_word = { name: 'ID' }

export const processVerbs: readonly Verb[] = [
  {
    name: 'process import',
    words: [{ name: 'FILE' }],
    flags: [
      { name: 'id', value: 'CONV_ID', says: 'its id, instead of the one it carries' },
      {
        name: 'move',
        value: 'OLD=NEW',
        says: 'where tasks of a dropped node go; may be repeated',
        many: true,
      },
      {
        name: 'map',
        value: 'OLD=NEW',
        says: 'a new id for a process of FILE, or what @name means; may be repeated',
        many: true,
      },
      ...flags,
    ],
    says: 'store a definition, or a new version of one',
    notes: [
      'FILE holds one definition or an array of them; - is standard input. Every mistake is',
      'named, and with any mistake nothing is stored. A process given a new id with --map is',
      'named by it in all of FILE.',
    ],
    run: importFile,
  },
  {
    name: 'process list',
    words: [],
    flags,
    says: 'list the processes',
    async run(given, io) {
      const processes = await withAdmin(given, io, (admin) => admin.call('process.list', {}))
      return printList(io, isOn(given, 'json'), processes, {
        jsonOf: (row) => JSON.stringify(row),
        heads: ['PROCESS', 'TITLE', 'STATUS', 'VERSION', 'TASKS'],
        cellsOf: ({ conv_id, title, status, version, tasks }) => [
          conv_id,
          title,
          status,
          String(version),
          String(tasks),
        ],
      })
    },
  },
  {
    name: 'process show',
    words: [id_word],
    flags: [
      { name: 'mermaid', says: 'as a Mermaid flowchart' },
      { name: 'svg', says: 'as a picture, an SVG file' },
      ...flags,
    ],
    says: 'show a process, its nodes and the tasks in them',
    async run(given, io) {
      const id = word(given, 0)
      if (['json', 'mermaid', 'svg'].filter((name) => isOn(given, name)).length > 1) {
        throw usageError('--json, --mermaid or --svg, not both')
      }
      const found = await withAdmin(given, io, (admin) => admin.call('process.show', { id }))
      const { definition_text: _long, ...shown } = found
      const textOf = isOn(given, 'svg') ? svgOf : isOn(given, 'mermaid') ? mermaidOf : pageOf
      return printDone(io, isOn(given, 'json'), JSON.stringify(shown), textOf(found))
    },
  },
  {
    name: 'process export',
    words: [id_word],
    flags,
    says: 'print the definition as it was given',
    async run(given, io) {
      const id = word(given, 0)
      const found = await withAdmin(given, io, (admin) => admin.call('process.export', { id }))
      await print(io.stdout, `${found.definition_text}\n`)
      return exits.done
    },
  },
  {
    name: 'process share',
    words: [id_word, { name: 'USER' }],
    flags: [
      { name: 'can', value: 'LIST', says: 'some of create,modify,show (default all three)' },
      ...flags,
    ],
    says: 'let a user work with a process',
    async run(given, io) {
      const [id, user] = [word(given, 0), word(given, 1)]
      const can = canOf(text(given, 'can'))
      await withAdmin(given, io, (admin) => admin.call('process.share', { id, user, can }))
      return printState(given, io, { user: idJson(user), can: JSON.stringify(can) })
    },
  },
  {
    name: 'process unshare',
    words: [id_word, { name: 'USER' }],
    flags,
    says: 'take that back',
    async run(given, io) {
      const [id, user] = [word(given, 0), word(given, 1)]
      await withAdmin(given, io, (admin) => admin.call('process.unshare', { id, user }))
      return printState(given, io, { user: idJson(user), can: '[]' })
    },
  },
  {
    name: 'process webhook',
    words: [id_word],
    flags: [
      { name: 'new', says: 'open it at a new address, in place of an open one' },
      { name: 'off', says: 'close it' },
      { name: 'basic-auth', value: 'USER', says: 'open it to whom has the secret of a user' },
      ...flags,
    ],
    says: 'print the addresses that take requests without a signature',
    notes: [
      'Whoever knows the address of the webhook can make tasks, and whoever knows the callback',
      'address of a node can let tasks go on that wait there. With --basic-auth a request to the',
      'webhook must also carry HTTP basic credentials: the id and the secret of the user.',
    ],
    run: showWebhook,
  },
  ...(
    [
      ['pause', 'refuse creates and modifies; no task moves', { status: '"paused"' }],
      ['resume', 'let a paused process go on', { status: '"active"' }],
      ['remove', 'remove a process in which no task lives', { removed: 'true' }],
    ] as const
  ).map(
    ([name, says, result]): Verb => ({
      name: `process ${name}`,
      words: [id_word],
      flags,
      says,
      async run(given, io) {
        const id = word(given, 0)
        await withAdmin(given, io, (admin) => admin.call(`process.${name}`, { id }))
        return printState(given, io, result)
      },
    }),
  ),
]

async function showWebhook(given: Given, io: Io): Promise<Exit> {
  const [is_new, is_off] = [isOn(given, 'new'), isOn(given, 'off')]
  const user = text(given, 'basic-auth')
  if (is_off && (is_new || user !== undefined)) throw usageError('--off goes with no other')
  const change = {
    ...(is_new || is_off ? { address: is_new ? ('new' as const) : ('off' as const) } : {}),
    ...(user === undefined ? {} : { user }),
  }
  const found = await withAdmin(given, io, (admin) =>
    admin.call('process.webhook', { id: word(given, 0), ...change }),
  )
  const page = columns([
    ['webhook', found.address ?? '-'],
    ...(found.user === null ? [] : [['user', found.user] as const]),
    ...found.callbacks.map(({ node_id, address }) => [`callback ${node_id}`, address] as const),
  ])
  return printDone(io, isOn(given, 'json'), JSON.stringify(found), page)
}

async function importFile(given: Given, io: Io): Promise<Exit> {
  const file = word(given, 0)
  const id = text(given, 'id')
  const moves = pairsOf('move', list(given, 'move'))
  const map = pairsOf('map', list(given, 'map'))
  const definitions = decodeText(await readInput(file, io), file)
  const results = await withAdmin(
    given,
    io,
    (admin) =>
      admin.call('process.import', {
        text: definitions,
        moves,
        map,
        ...(id === undefined ? {} : { id }),
      }),
    { creates: true },
  )
  if (isOn(given, 'json')) {
    await printLines(
      io,
      results.map((result) => JSON.stringify(result)),
    )
    return exits.done
  }
  for (const { conv_id, version, state, warnings } of results) {
    await print(io.stdout, `process ${clean(conv_id)}: ${state}, version ${version}\n`)
    for (const warning of warnings) await print(io.stderr, `  warning: ${clean(warning)}\n`)
  }
  return exits.done
}

function pairsOf(flag: string, given: readonly string[]): Record<string, string> {
  const pairs: [string, string][] = []
  for (const pair of given) {
    const [, old_id, new_id] = /^([^=]+)=([^=]+)$/.exec(pair) ?? []
    if (old_id === undefined || new_id === undefined) throw usageError(`--${flag} takes OLD=NEW`)
    pairs.push([old_id, new_id])
  }
  return Object.fromEntries(pairs)
}

const all_can: readonly Can[] = ['create', 'modify', 'show']

function canOf(given: string | undefined): Can[] {
  if (given === undefined) return [...all_can]
  const names = given.split(',')
  const can = all_can.filter((name) => names.includes(name))
  if (can.length !== names.length) throw usageError('--can takes some of create,modify,show')
  return can
}

/** Prints nothing for people; for programs the process and its new state. */
function printState(given: Given, io: Io, members: Record<string, string>): Promise<Exit> {
  const state = jsonOf({ conv_id: JSON.stringify(word(given, 0)), ...members })
  return printDone(io, isOn(given, 'json'), state)
}

function pageOf(found: AdminValue<'process.show'>): string {
  const { conv_id, title, status, version, hash, tasks, nodes, shared_with } = found
  const head = columns([
    ['process', conv_id],
    ['title', title],
    ['status', status],
    ['version', `${version} (${hash.slice(0, 12)})`],
    ['tasks', String(tasks)],
    ['shared', shared_with.map(({ user, can }) => `${user} (${can.join(',')})`).join(' ') || '-'],
  ])
  const rows = nodes.map((node) => [
    node.id,
    node.kind,
    String(node.tasks),
    node.title,
    node.to.join(' '),
  ])
  return `${head}\n${table(['NODE', 'KIND', 'TASKS', 'TITLE', 'LEADS TO'], rows)}`
}
