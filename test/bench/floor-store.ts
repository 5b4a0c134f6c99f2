/**
 * The floor of in-process cells: LMDB by hand, opened with the engine's options. One batch at a time
 * carries the ops of all callers: the puts that the engine would make, with keys and values of the
 * same size and order, durable together. It checks and parses nothing, and its values are encoded in
 * advance; the only read is the look-up of a modify's ref.
 */
import { open } from 'lmdb'
import { idBytes, idHex } from '../../src/codec/ids.ts'
import { docOfText } from '../../src/codec/json.ts'
import { atNodeKey, metaKey, nodeCountKey, refKey, taskKey } from '../../src/codec/keys.ts'
import { encodeTask } from '../../src/codec/task-bytes.ts'
import { type LmdbDatabase, lmdbOptions } from '../../src/store/lmdb/database.ts'
import type { Refs, WriteVerb } from './cells.ts'
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import type { FileCalls } from './load.ts'
import { removeFiles } from './resource-usage.ts'
import { conv_id, dataOf, type OpSource, opSource, refOf } from './workload.ts'

interface OpenFile {
  readonly path: string
  readonly refs: Refs
  readonly db: LmdbDatabase
  readonly source: OpSource
  /** By number of task: 1 if it is in the node `again`. */
  readonly is_moved: Uint8Array
}

let current: OpenFile | undefined
const empty = Buffer.alloc(0)
const count = Buffer.alloc(8)

const calls: FileCalls = {
  async open({ path, tasks, is_new, refs }) {
    const db: LmdbDatabase = open(path, lmdbOptions)
    current = { path, refs, db, source: opSource(tasks, refs), is_moved: new Uint8Array(tasks) }
    if (!is_new || tasks === 0) return
    await db.batch(() => {
      for (let n = 0; n < tasks; n++) putNew(db, n, refs)
      putShared(db)
    })
  },

  async run({ verb, ops, callers, ...span }) {
    if (verb === 'read') throw new Error('the floor of the store does not read')
    const { db, refs, source, is_moved } = current as OpenFile
    const ops_each = ops * callers
    return closedLoop({ callers: 1, ops: ops_each, ...span }, async () => {
      const numbers = source.take(verb, ops_each)
      await db.batch(() => {
        for (const n of numbers) {
          if (verb === 'create') putNew(db, n, refs)
          else putMoved(db, n, refs, is_moved)
        }
        putShared(db)
      })
    })
  },

  async close({ remove }) {
    if (current === undefined) return
    const { path, db } = current
    current = undefined
    await db.close()
    if (remove) await removeFiles(path)
  },
}

serveCalls(calls, () => calls.close({ remove: false }))

let last_id = 0

function putNew(db: LmdbDatabase, n: number, refs: Refs): void {
  const obj_id = `f0000000${(last_id++).toString(16).padStart(16, '0')}`
  void db.put(atNodeKey(conv_id, 'wait', obj_id), empty)
  void db.put(refKey(conv_id, refOf(n, refs)), Buffer.from(idBytes(obj_id), 'latin1'))
  void db.put(taskKey(obj_id), records.create)
}

function putMoved(db: LmdbDatabase, n: number, refs: Refs, is_moved: Uint8Array): void {
  const obj_id = idHex((db.getBinary(refKey(conv_id, refOf(n, refs))) as Buffer).toString('latin1'))
  const [from, to] = is_moved[n] === 1 ? ['again', 'wait'] : ['wait', 'again']
  is_moved[n] = 1 - (is_moved[n] as number)
  void db.remove(atNodeKey(conv_id, from as string, obj_id))
  void db.put(atNodeKey(conv_id, to as string, obj_id), empty)
  void db.put(taskKey(obj_id), records.modify)
}

/** The puts that the engine makes once in a commit. */
function putShared(db: LmdbDatabase): void {
  void db.put(nodeCountKey(conv_id, 'wait'), count)
  void db.put(metaKey('last_id'), count)
}

const records: Readonly<Record<WriteVerb, Buffer>> = {
  create: recordOf(dataOf('create', 1_000_000), undefined),
  modify: recordOf(
    { ...dataOf('create', 1_000_000), ...dataOf('modify', 1_000_000) },
    Buffer.alloc(32),
  ),
}

function recordOf(data: object, digest: Buffer | undefined): Buffer {
  const record = encodeTask({
    obj_id: '0'.repeat(24),
    conv_id,
    ref: { text: refOf(0, 'random'), is_number: false },
    user_id: undefined,
    create_ms: 0,
    change_ms: 0,
    status: 'delayed',
    details: undefined,
    node_id: 'wait',
    node_prev_id: 'start',
    nodes: ['start', 'wait'],
    wait: 'callback',
    logic_at: 0,
    due_ms: 0,
    semaphor_at: 0,
    visit: 2,
    moves: 0,
    digest,
    at_ms: 0,
    has_slots: false,
    attempts: 0,
    caller_id: undefined,
    called_id: undefined,
    former_id: undefined,
    doc: docOfText(JSON.stringify(data)),
    history: '',
    history_count: 0,
    history_ms: -1,
    trace: undefined,
  })
  return Buffer.from(record)
}
