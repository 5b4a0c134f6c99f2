/**
 * The `process` verbs: export, list, show, share, pause and remove processes. Import, export and
 * aliases have their own files.
 */
import { newDrawings } from '../../console/diagram/drawings.ts'
import { mermaidOf } from '../../console/diagram/mermaid.ts'
import { svgOf } from '../../console/diagram/svg.ts'
import { defined } from '../../core/defined.ts'
import type { Status } from '../../core/model.ts'
import type { Can } from '../../engine/api/process-api.ts'
import type { AdminValue } from '../../server/admin/verbs.ts'
import type { TaskView } from '../../task-operations/task-view.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import { ask, change, fileVerb, listVerb } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { idJson, printDone } from '../output.ts'
import { withFile, withProgram } from '../program.ts'
import { clean, fields, table } from '../text.ts'
import { flag, type Given, isOn, text, type Verb, word } from '../verb.ts'
import { exportVerb } from './process-export.ts'
import { importVerb } from './process-import.ts'
import { rowsOf } from './task-list.ts'

export const processVerbs: readonly Verb[] = [
  importVerb,
  listVerb('process list', 'process.list', {
    says: 'list the processes',
    heads: ['PROCESS', 'TITLE', 'STATUS', 'VERSION', 'TASKS'],
    cellsOf: ({ conv_id, title, status, version, tasks }) =>
      [conv_id, title, status, version, tasks].map(String),
  }),
  fileVerb('process show ID', {
    flags: [flag('mermaid', 'as a Mermaid flowchart'), flag('svg', 'as a picture, an SVG file')],
    says: 'show a process, its nodes and the tasks in them',
    async run(given, io) {
      const id = word(given, 0)
      if (['json', 'mermaid', 'svg'].filter((name) => isOn(given, name)).length > 1) {
        throw usageError('--json, --mermaid or --svg, not both')
      }
      const [found, tasks] = await withAdmin(given, io, async (admin) => {
        const shown = await admin.call('process.show', { id })
        const which = shown.tasks > 0 ? {} : ({ status: 'any', newest_first: true } as const)
        const page = { conv_id: id, limit: shown_tasks_max, ...which }
        return [shown, (await admin.call('task.list', page)).tasks] as const
      })
      const { definition_text: _long, ...shown } = found
      const page = (): string => withProgram(withFile(pageOf(found, tasks), given), io.program)
      const shown_as = isOn(given, 'svg')
        ? svgOf(found, await newDrawings().drawingOf(found))
        : isOn(given, 'mermaid')
          ? mermaidOf(found)
          : page()
      return printDone(given, io, shown, shown_as)
    },
  }),
  exportVerb,
  fileVerb('process share ID USER', {
    flags: [flag('can LIST', 'some of create,modify,show,edit (default all but edit)')],
    says: 'let a user work with a process',
    run(given, io) {
      const [id, user] = [word(given, 0), word(given, 1)]
      const can = canOf(text(given, 'can'))
      const shows = { ...named(id), user: idJson(user), can: JSON.stringify(can) }
      return change(given, io, 'process.share', { id, user, can }, shows)
    },
  }),
  fileVerb('process unshare ID USER', {
    says: 'remove the right of a user on a process',
    run(given, io) {
      const [id, user] = [word(given, 0), word(given, 1)]
      const shows = { ...named(id), user: idJson(user), can: '[]' }
      return change(given, io, 'process.unshare', { id, user }, shows)
    },
  }),
  fileVerb('process webhook ID', {
    flags: [
      flag('new', 'open it at a new address, in place of an open one'),
      flag('off', 'close it'),
      flag('basic-auth USER', 'open it to callers with the secret of a user'),
    ],
    says: 'print the addresses that take requests without a signature',
    notes: [
      'The address of the webhook is enough to make tasks, and the callback address of a node to',
      'let a task go on that waits there. With --basic-auth a request to the webhook must also',
      'carry HTTP basic credentials: the id and the secret of the user. A definition with a login',
      'of its own (type_auth) asks for that instead.',
    ],
    run: showWebhook,
  }),
  ...(
    [
      ['pause', 'refuse creates and modifies; no task moves', { status: '"paused"' }],
      ['resume', 'let a paused process go on', { status: '"active"' }],
      ['remove', 'remove a process in which no task lives', { removed: 'true' }],
    ] as const
  ).map(([name, says, result]) =>
    fileVerb(`process ${name} ID`, {
      says,
      run(given, io) {
        const id = word(given, 0)
        return change(given, io, `process.${name}`, { id }, { ...named(id), ...result })
      },
    }),
  ),
]

async function showWebhook(given: Given, io: Io): Promise<Exit> {
  const [is_new, is_off] = [isOn(given, 'new'), isOn(given, 'off')]
  const user = text(given, 'basic-auth')
  if (is_off && (is_new || user !== undefined)) throw usageError('--off goes with no other flag')
  const wanted = {
    ...(is_new || is_off ? { address: is_new ? ('new' as const) : ('off' as const) } : {}),
    ...defined({ user }),
  }
  const found = await ask(given, io, 'process.webhook', { id: word(given, 0), ...wanted })
  const page = fields([
    ['webhook', found.address ?? '-'],
    ['user', found.has_login ? 'the login of its definition' : (found.user ?? undefined)],
    ...found.callbacks.map(({ node_id, address }) => [`callback ${node_id}`, address] as const),
  ])
  return printDone(given, io, found, page)
}

const task_rights: readonly Can[] = ['create', 'modify', 'show']

function canOf(given: string | undefined): Can[] {
  if (given === undefined) return [...task_rights]
  const names = given.split(',')
  const can = [...task_rights, 'edit' as const].filter((name) => names.includes(name))
  if (can.length !== names.length) throw usageError('--can takes some of create,modify,show,edit')
  return can
}

const named = (id: string): { readonly conv_id: string } => ({ conv_id: JSON.stringify(id) })

/** With a process the oldest of its live tasks are shown, without those its newest. */
const shown_tasks_max = 5

function pageOf(found: AdminValue<'process.show'>, shown: readonly TaskView[]): string {
  const { conv_id, title, status, version, hash, tasks, nodes, shared_with } = found
  const sum = (of: Status): number => nodes.reduce((all, { by_status }) => all + by_status[of], 0)
  const head = fields([
    ['process', conv_id],
    ['title', title],
    ['status', status],
    ['version', `${version} (${hash.slice(0, 12)})`],
    ['tasks', `${tasks} live, of which ${sum('failed')} failed; ${ended(sum)} ended are kept`],
    ['shared', shared_with.map(({ user, can }) => `${user} (${can.join(',')})`).join(' ') || '-'],
  ])
  const has_handlers = nodes.some(({ handler }) => handler !== undefined)
  const titles = new Map(nodes.map((node) => [node.id, node.title]))
  const rows = nodes.map(({ by_status, ...node }) => [
    node.title,
    node.kind,
    ...[node.tasks, by_status.failed, ended((of) => by_status[of])].map(String),
    (node.is_stub === true ? 'stub' : node.waits_for.join(', ')) || '-',
    ...(has_handlers ? [node.handler ?? '-'] : []),
    node.to.map((id) => titles.get(id) ?? id).join(', ') || '-',
    node.id,
  ])
  const handler = has_handlers ? ['HANDLER'] : []
  const heads = ['NODE', 'KIND', 'TASKS', 'FAILED', 'ENDED', 'WAITS FOR', ...handler, 'LEADS TO']
  const page = `${head}\n${table([...heads, 'ID'], rows)}`
  if (shown.length === 0) return page
  const verb = `npx conveyor task list ${conv_id}${tasks > 0 ? '' : ' --status any'}`
  const says = `${tasks > 0 ? 'The oldest live' : 'The newest'} tasks (\`${verb}\`):`
  return `${page}\n${clean(says)}\n${rowsOf(shown, true, false)}`
}

const ended = (count: (of: Status) => number): number => count('processed') + count('canceled')
