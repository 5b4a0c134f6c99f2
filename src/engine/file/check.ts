/**
 * Checks the invariants of the key table (codec/keys) and names each breach. It runs in slices;
 * each key is compared with others in the same view, so a concurrent change is not a breach. The
 * tasks of each node are counted over all slices (engine/file/check-counts).
 */

import { changesOfEntry, headOfEntry } from '../../codec/change-entry.ts'
import { shapeOf } from '../../codec/data-shape.ts'
import { aboutOf } from '../../codec/described.ts'
import { idOfValue } from '../../codec/ids.ts'
import {
  address_secret,
  aliasOfKey,
  atNodeKey,
  atNodeOfKey,
  bulkOfKey,
  certificateOfKey,
  changeOfKey,
  draftKey,
  draftOfKey,
  dueKey,
  endedKey,
  failedKey,
  grantOfKey,
  type Key,
  type KeyType,
  keysOfType,
  metaKey,
  nodeCountOfKey,
  outboxKey,
  outboxOfKey,
  processKey,
  processOfKey,
  queueKey,
  queueOfKey,
  refOfKey,
  replayOfKey,
  scheduleOfKey,
  secretOfKey,
  sumOfKey,
  taskOfKey,
  taskSlotsOf,
  timeOfKey,
  userKey,
  variableOfKey,
  versionKey,
  versionOfKey,
} from '../../codec/keys.ts'
import {
  type BulkRecord,
  type CertificateRecord,
  decodeRecord,
  type ProcessRecord,
  type ScheduleRecord,
  type VariableAbout,
} from '../../codec/records.ts'
import { isReadableReplay } from '../../codec/replay-record.ts'
import { decodeTask } from '../../codec/task-bytes.ts'
import { is_live, type TaskRecord } from '../../codec/task-record.ts'
import { parseTraceparent, traceparentOf } from '../../core/tracing.ts'
import type { Entry, Store, View } from '../../store/store.ts'
import { webhook_owner } from '../access/webhook-locks.ts'
import type { CheckReport } from '../api/engine-api.ts'
import { loadTask, taskIdOfRef } from '../tasks/task-store.ts'
import { lastEntry, readEntry } from '../transactions/change-log.ts'
import { allIn, eachEntry } from '../transactions/scans.ts'
import { shapeIn } from '../transactions/shapes.ts'
import { variable_owner } from '../transactions/variables.ts'
import { checkCount, newCounted } from './check-counts.ts'

const slice_keys = 250
const breaches_max = 1_000

/** A sentence that names the breach, or undefined. */
type Invariant = (view: View, entry: Entry) => string | undefined

const invariants: Partial<Record<KeyType, Invariant>> = {
  secret: (view, { key }) => {
    const { user, n } = secretOfKey(key)
    if (user.startsWith(webhook_owner)) {
      const conv_id = user.slice(webhook_owner.length)
      return view.get(processKey(conv_id)) ? undefined : `secret of process ${conv_id}: none such`
    }
    if (user.startsWith(variable_owner)) {
      const name = user.slice(variable_owner.length)
      const is_it = ({ value }: Entry) => aboutOf<VariableAbout>(value).secret === name
      if (allIn(view, keysOfType('variable')).some(is_it)) return undefined
      return `secret of a variable: none such`
    }
    if (user === address_secret || view.get(userKey(user))) return undefined
    return `secret ${n} of user ${user}: no such user`
  },
  certificate: (view, { key, value }) => {
    const record = decodeRecord<CertificateRecord>(value)
    if (record.acts_as !== 'user' || view.get(userKey(record.user))) return undefined
    return `certificate ${certificateOfKey(key)} names user ${record.user}: no such user`
  },
  grant: (view, { key }) => {
    const { user, conv } = grantOfKey(key)
    return view.get(userKey(user)) ? undefined : `grant of ${conv} to user ${user}: no such user`
  },
  process: (view, { key, value }) => {
    const conv_id = processOfKey(key)
    const { version } = decodeRecord<ProcessRecord>(value)
    return view.get(versionKey(conv_id, version))
      ? undefined
      : `process ${conv_id}: version ${version} is missing`
  },
  version: (view, { key }) => {
    const { conv, n } = versionOfKey(key)
    return view.get(processKey(conv)) ? undefined : `version ${n} of ${conv}: no such process`
  },
  draft: (view, { key }) => {
    const { conv, user } = draftOfKey(key)
    if (view.get(processKey(conv)) === undefined) return `a draft of ${conv}: no such process`
    if (user === '' || view.get(userKey(user))) return undefined
    return `a draft of ${conv} is of user ${user}: no such user`
  },
  draft_node: (view, { key }) => {
    const { conv, user } = draftOfKey(key)
    if (view.get(draftKey(conv, user))) return undefined
    return `a changed node of ${conv} belongs to no draft`
  },
  shape: (_view, { key, value }) => {
    const { conv, n } = versionOfKey(key)
    return shapeOf(value.toString('utf8')).n === n ? undefined : `shape ${n} of ${conv} is another`
  },
  ref: (view, { key, value }) => {
    const { conv, ref } = refOfKey(key)
    const fits = hasTask(
      view,
      idOfValue(value),
      (task) => task.conv_id === conv && task.ref?.text === ref,
    )
    return fits ? undefined : `ref "${ref}" of ${conv} names no task with that ref`
  },
  at_node: (view, { key }) => {
    const { conv, node, obj_id } = atNodeOfKey(key)
    const fits = hasTask(
      view,
      obj_id,
      (task) => is_live[task.status] && task.conv_id === conv && task.node_id === node,
    )
    return fits ? undefined : `node "${node}" of ${conv} lists task ${obj_id}, which is not there`
  },
  due: (view, { key }) => {
    const { conv, ms, obj_id } = timeOfKey(key)
    const fits = hasTask(view, obj_id, (task) => task.conv_id === conv && task.due_ms === ms)
    return fits ? undefined : `a timer of ${conv} names task ${obj_id}, which has none at ${ms}`
  },
  outbox: (view, { key }) => {
    const { ms, obj_id } = outboxOfKey(key)
    const fits = hasTask(view, obj_id, (task) => task.wait === 'work' && task.at_ms === ms)
    return fits ? undefined : `the work to do names task ${obj_id}, which has none at ${ms}`
  },
  queue: (view, { key }) => {
    const { conv, node, obj_id } = queueOfKey(key)
    const fits = hasTask(view, obj_id, (task) => {
      const { wait, conv_id, node_id, at_ms } = task
      return wait === 'queue' && key === queueKey(conv_id, node_id, at_ms, obj_id)
    })
    return fits ? undefined : `the queue "${node}" of ${conv} names task ${obj_id}, not in it`
  },
  sum: (view, { key }) => {
    const { conv, node, name } = sumOfKey(key)
    if (view.get(processKey(conv))) return undefined
    return `sum "${name}" in node "${node}" of ${conv}: no such process`
  },
  change: checkChange,
  bulk: (_view, { key, value }) => {
    const { last_id, until_id } = decodeRecord<BulkRecord>(value)
    return last_id <= until_id ? undefined : `bulk job "${bulkOfKey(key)}" is beyond its end`
  },
  alias: (_view, { key, value }) => {
    const name = aliasOfKey(key)
    return name !== '' && value.length > 0 ? undefined : `alias "${name}" names no process`
  },
  variable: (_view, { key, value }) => {
    const name = variableOfKey(key)
    return name !== '' && value.length > 0 ? undefined : `variable "${name}" has no value`
  },
  schedule: (_view, { key, value }) => {
    const { next_ms, last } = decodeRecord<ScheduleRecord>(value)
    if (next_ms === null || last === undefined || next_ms > last.due_ms) return undefined
    // A due time stays while its process takes no tasks.
    if (next_ms === last.due_ms && last.proc !== 'ok') return undefined
    return `schedule ${scheduleOfKey(key)} is due at ${next_ms}, which it was before`
  },
  replay: (_view, { key, value }) => {
    const { kind, time_s } = replayOfKey(key)
    if (kind === undefined) return 'a replay record is of no known kind'
    return isReadableReplay(value) ? undefined : `a replay record of second ${time_s} is damaged`
  },
  failed: (view, { key }) => {
    const { conv, ms, obj_id } = timeOfKey(key)
    const fits = hasTask(view, obj_id, ({ status, conv_id, change_ms }) => {
      return status === 'failed' && conv_id === conv && change_ms === ms
    })
    return fits ? undefined : `the failed of ${conv} list task ${obj_id}, which has not at ${ms}`
  },
  ended: (view, { key }) => {
    const { conv, obj_id } = timeOfKey(key)
    const fits = hasTask(view, obj_id, (task) => !is_live[task.status] && task.conv_id === conv)
    return fits ? undefined : `the sweep list of ${conv} names task ${obj_id}, which has not ended`
  },
}

function checkChange(view: View, { key, value }: Entry): string | undefined {
  const n = changeOfKey(key)
  try {
    changesOfEntry(value)
  } catch {
    return `the changes of number ${n} are damaged`
  }
  const before = readEntry(view, n - 1)
  if (before === undefined) {
    const { from } = keysOfType('change')
    const is_first = view.scan({ from, to: key, limit: 1 }).length === 0
    return is_first ? undefined : `the changes before number ${n} are missing`
  }
  const head = headOfEntry(value)
  if (head?.bytes_before === before.bytes && head.at_ms >= before.at_ms) return undefined
  return `the changes of number ${n} do not follow those before`
}

/** Whether the task exists and matches. A damaged one is reported by its own key. */
function hasTask(view: View, obj_id: string, isAsExpected: (task: TaskRecord) => boolean): boolean {
  const held = loadTask(view, obj_id)
  return held === 'damaged' || (held !== undefined && isAsExpected(held.task))
}

function checkTask(view: View, task: TaskRecord): string | undefined {
  const { obj_id } = task
  const has = (other: Key): boolean => view.get(other) !== undefined
  if (task.trace !== undefined && parseTraceparent(traceparentOf(task.trace)) === undefined) {
    return `task ${obj_id} remembers a trace of zeros`
  }
  if (!is_live[task.status]) {
    if (!has(endedKey(task.conv_id, task.change_ms, obj_id))) {
      return `task ${obj_id} has ended and is not in the sweep list`
    }
    return isFoundByRef(view, task) ? undefined : `task ${obj_id} has ended and its ref is free`
  }
  if (!has(processKey(task.conv_id))) return `task ${obj_id}: no process ${task.conv_id}`
  if (!has(atNodeKey(task.conv_id, task.node_id, obj_id))) {
    return `task ${obj_id} is not listed in its node "${task.node_id}"`
  }
  if (task.wait === 'ready' && task.due_ms === 0) return `task ${obj_id} is ready and has no timer`
  if (task.wait === 'reply' && !isOwedReply(view, task)) {
    return `task ${obj_id} waits for a reply that nobody owes`
  }
  if (task.due_ms !== 0 && !has(dueKey(task.conv_id, task.due_ms, obj_id))) {
    return `task ${obj_id} has no timer at ${task.due_ms}`
  }
  if (task.wait === 'work' && !has(outboxKey(task.at_ms, obj_id))) {
    return `task ${obj_id} rests for work that is not listed at ${task.at_ms}`
  }
  if (task.wait === 'queue' && !has(queueKey(task.conv_id, task.node_id, task.at_ms, obj_id))) {
    return `task ${obj_id} is not listed in the queue of its node "${task.node_id}"`
  }
  if (task.has_slots !== view.scan({ ...taskSlotsOf(obj_id), limit: 1 }).length > 0) {
    return `task ${obj_id} ${task.has_slots ? 'lacks its slots' : 'has slots it does not know of'}`
  }
  if (task.status === 'failed' && !has(failedKey(task.conv_id, task.change_ms, obj_id))) {
    return `task ${obj_id} has failed and is not listed at ${task.change_ms}`
  }
  return isFoundByRef(view, task)
    ? undefined
    : `task ${obj_id} does not hold its ref "${task.ref?.text}"`
}

/** Whether the ref names the task or, if it has ended, a later one. */
function isFoundByRef(view: View, task: TaskRecord): boolean {
  if (task.ref === undefined) return true
  const holder = taskIdOfRef(view, task.conv_id, task.ref.text)
  if (holder === undefined || holder === task.obj_id) return holder !== undefined
  const is_later = ({ change_ms }: TaskRecord): boolean => change_ms >= task.change_ms
  return !is_live[task.status] && hasTask(view, holder, is_later)
}

/** Whether the called task is live and names its caller. */
function isOwedReply(view: View, { obj_id, called_id }: TaskRecord): boolean {
  const held = called_id === undefined ? undefined : loadTask(view, called_id)
  if (held === 'damaged') return true
  return held !== undefined && is_live[held.task.status] && held.task.caller_id === obj_id
}

/** The listeners get the key of each node_count that a transaction changes, before its commit. */
export async function checkStore(
  store: Pick<Store, 'view' | 'update' | 'damage'>,
  count_listeners: Set<(key: Key) => void>,
): Promise<CheckReport> {
  const breaches: string[] = []
  const counts: Record<string, number> = {}
  const note = (breach: string | undefined): void => {
    if (breach !== undefined && breaches.length < breaches_max) breaches.push(breach)
  }
  for (const damaged of await store.damage()) note(damaged)
  for (const name of ['format', 'file_id']) {
    const found = await store.view((view) => view.get(metaKey(name)) !== undefined)
    if (!found) note(`meta: ${name} is missing`)
  }
  let last_change_ms = (await store.view(lastEntry)).at_ms
  const in_nodes = newCounted()
  /** Tasks not counted in `in_nodes`, and their processes. */
  const damaged = new Set<string>()
  const damaged_in = new Set<string>()
  const changed = new Set<Key>()
  const listener = (key: Key): void => void changed.add(key)
  count_listeners.add(listener)
  try {
    // Earlier changes are durable now, so all views show them.
    await store.update(() => {}).catch(() => {})
    counts.task = await eachEntry(store, 'task', slice_keys, (view, { key, value }) => {
      const task = decodeTask(taskOfKey(key), value, (conv, n) => shapeIn(view, conv, n))
      if (task === 'damaged') {
        damaged.add(taskOfKey(key))
        note(`task ${taskOfKey(key)} is damaged`)
        return
      }
      in_nodes.add(task)
      last_change_ms = Math.max(last_change_ms, task.change_ms)
      note(checkTask(view, task))
    })
    const { limit_invariants } = await import('../limits/limit-checks.ts')
    const all: typeof invariants = { ...invariants, ...limit_invariants }
    for (const type of Object.keys(all) as KeyType[]) {
      const invariant = all[type] as Invariant
      counts[type] = await eachEntry(store, type, slice_keys, (view, entry) => {
        note(invariant(view, entry))
        if (damaged.size === 0 || (type !== 'at_node' && type !== 'ended')) return
        const { conv, obj_id } = (type === 'ended' ? timeOfKey : atNodeOfKey)(entry.key)
        if (damaged.has(obj_id)) damaged_in.add(conv)
      })
    }
    counts.user = await eachEntry(store, 'user', slice_keys, () => {})
    counts.node_count = await eachEntry(store, 'node_count', slice_keys, (_view, { key }) => {
      in_nodes.of(key)
    })
    for (const [key, counted] of in_nodes.nodes) {
      if (damaged_in.has(nodeCountOfKey(key).conv)) continue
      note(await store.view((view) => checkCount(view, key, counted, changed)))
    }
  } finally {
    count_listeners.delete(listener)
  }
  return { breaches, counts, ...(last_change_ms > 0 ? { last_change_ms } : {}) }
}
