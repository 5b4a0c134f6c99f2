/**
 * Our protobuf codec against the schema's: each decodes what the other encodes.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { OpResult, Task } from '../src/core/model.ts'
import type { TaskCounts, TaskPage } from '../src/engine/api/search-api.ts'
import type { SeenChange } from '../src/engine/changes/changes.ts'
import type { Op } from '../src/server/grpc/generated/messages.ts'
import {
  type OpMessage,
  readApplyOps,
  readChange,
  readCreate,
  readModify,
  readShow,
  readStreamOps,
} from '../src/server/grpc/request-messages.ts'
import {
  encodeAction,
  encodeAddress,
  encodeResults,
  encodeStreamResponse,
  encodeTask,
} from '../src/server/grpc/response-messages.ts'
import { loadSchema, type Sent } from '../src/server/grpc/schema.ts'
import {
  encodeChange,
  encodeCounts,
  encodePage,
  readCountTasks,
  readListTasks,
  readWatchTasks,
} from '../src/server/grpc/task-messages.ts'
import { anyCharacter } from './support/any-text.ts'

const {
  CreateTask,
  ModifyTask,
  GetTask,
  ApplyOps,
  StreamOps,
  WaitTask,
  CancelTask,
  RetryTask,
  ListTasks,
  CountTasks,
  WatchTasks,
} = loadSchema().service

const text = fc.oneof(fc.string(), fc.string({ unit: anyCharacter }), fc.string({ minLength: 120 }))
const bytes = fc.uint8Array({ maxLength: 300 }).map((given) => Buffer.from(given))
const maybe = fc.option(text, { nil: undefined })
const uint64 = fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 300n))

const create = fc.record({
  type: fc.constant('create'),
  conv_id: text,
  ref: maybe,
  data_json: bytes,
  request_key: text,
})
const target = fc.oneof(
  fc.record({ ref: text, obj_id: fc.constant(undefined) }),
  fc.record({ ref: fc.constant(undefined), obj_id: text }),
  fc.constant({ ref: undefined, obj_id: undefined }),
)
const modify = fc
  .record({
    ...{ conv_id: text, target, data_json: bytes, is_sync: fc.boolean(), node_id: text },
    request_key: text,
  })
  .map(({ target: { ref, obj_id }, ...rest }) => ({ type: 'modify', ref, obj_id, ...rest }))
const show = fc
  .record({ conv_id: text, target, with_history: fc.boolean() })
  .map(({ target, ...rest }) => ({ type: 'show', ...rest, ...target }))
const no_data = { data_json: Buffer.alloc(0), is_sync: false, request_key: '' }
const retry = fc
  .record({ conv_id: text, target, node_id: text })
  .map(({ target, ...rest }) => ({ type: 'modify', ...rest, ...target, ...no_data }))
const cancel = fc
  .record({ conv_id: text, target })
  .map(({ conv_id, target }) => ({ type: 'modify', conv_id, ...target, node_id: '', ...no_data }))
const kind = fc.oneof(create, modify, show, fc.constant(undefined))
const ops = fc.array(fc.record({ id: text, kind }), { maxLength: 5 })

type Kind = { readonly type: string } | undefined

/** The form that the schema encodes: without absent members. */
function sentKind(given: Kind): object {
  const { type: _, ...rest } = given ?? { type: '' }
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
}

function sentOps(given: readonly { readonly id: string; readonly kind: Kind }[]): Sent<Op>[] {
  return given.map(({ id, kind }) => (kind ? { id, [kind.type]: sentKind(kind) } : { id }))
}

const result: fc.Arbitrary<OpResult> = fc
  .record({
    ref: fc.option(text),
    obj_id: text,
    proc: fc.constantFrom('ok', 'error', 'not_found_task'),
    description: text,
    task: fc.option(
      fc.record({
        obj_id: text,
        conv_id: text,
        ref: fc.option(text),
        status: fc.constantFrom('delayed', 'failed'),
        user_id: fc.option(text),
        create_time_ms: fc.maxSafeNat(),
        change_time_ms: fc.maxSafeNat(),
        node_id: text,
        node_prev_id: text,
        data_text: text,
        status_details: fc.option(fc.record({ tag: text, description: text }), { nil: undefined }),
        history: fc.array(
          fc.record({ node_id: text, at_ms: fc.maxSafeNat(), why: text, by: maybe, tag: maybe }),
          { maxLength: 4 },
        ),
      }),
      { nil: undefined },
    ),
  })
  .map(({ task, ...rest }) => {
    const said = { ...rest, obj: 'task' } as OpResult
    return task === undefined ? said : { ...said, task: task as unknown as Task }
  })
const results = fc.array(fc.record({ id: text, result }), { maxLength: 5 })

function readResult({ ref, obj_id = '', proc, description = '', task }: OpResult): object {
  const address = ref === null ? { obj_id } : { ref, obj_id, _ref: 'ref' }
  return { ...address, proc, description, task: task === undefined ? null : readTask(task) }
}

function readTask({ ref, user_id, data_text, ...task }: Task, with_history = false): object {
  const history = with_history ? (task.history ?? []) : []
  return {
    ...task,
    ...(ref === null ? {} : { ref, _ref: 'ref' }),
    user_id: user_id ?? '',
    create_time_ms: String(task.create_time_ms),
    change_time_ms: String(task.change_time_ms),
    data_json: Buffer.from(data_text),
    history: history.map(({ node_id, at_ms, why, by = '', tag = '' }) => ({
      ...{ node_id, at_ms: String(at_ms), why, by, tag },
    })),
    status_details: task.status_details === undefined ? null : { ...task.status_details },
  }
}

const ops_max = 5

describe('messages that the schema encodes are decoded', () => {
  const rows = [
    ['CreateTask', create, CreateTask.requestSerialize, readCreate],
    ['ModifyTask', modify, ModifyTask.requestSerialize, readModify],
    ['GetTask', show, GetTask.requestSerialize, readShow],
    ['WaitTask', show, WaitTask.requestSerialize, readShow],
    ['RetryTask', retry, RetryTask.requestSerialize, readChange],
    ['CancelTask', cancel, CancelTask.requestSerialize, readChange],
  ] as const
  for (const [name, arbitrary, write, read] of rows) {
    test(name, () => {
      fc.assert(
        fc.property(arbitrary as fc.Arbitrary<{ type: string }>, (given) => {
          assert.deepEqual(read(write(sentKind(given))), plain(given))
        }),
      )
    })
  }

  test('batches, to the highest number', () => {
    fc.assert(
      fc.property(ops, uint64, text, (given, seq, request_key) => {
        const sent = { ops: sentOps(given), request_key }
        const ops = plain(given) as unknown[]
        const batch = { ops, op_count: ops.length, request_key }
        assert.deepEqual(readApplyOps(ApplyOps.requestSerialize(sent), ops_max), batch)
        const bytes = StreamOps.requestSerialize({ ...sent, seq: String(seq) })
        const read = readStreamOps(bytes, ops_max)
        assert.deepEqual({ ...read, seq: BigInt(read.seq) }, { ...batch, seq, bytes: bytes.length })
      }),
    )
  })

  test('ops beyond the limit are counted and not decoded', () => {
    const given = Buffer.from([0x0a, 3, 0x0a, 1, 0x61].concat(Array(7).fill([0x0a, 0]).flat()))
    const { ops, op_count } = readApplyOps(given, 2)
    assert.deepEqual(ops, [
      { id: 'a', kind: undefined },
      { id: '', kind: undefined },
    ])
    assert.equal(op_count, 8)
  })

  /** [what, the bytes of a ModifyTaskRequest, what of it differs from an empty one] */
  const odd_rows: [string, number[], object][] = [
    ['nothing', [], {}],
    ['fields that are not known', [0x78, 0x96, 1, 0x7a, 1, 7, 0x79, ...Array(8).fill(1)], {}],
    ['a flag of nine bytes that is none', [0x28, ...Array(7).fill(0x80), 0], {}],
    ['one of four bytes', [0x7d, 1, 2, 3, 4, 0x28, 1], { is_sync: true }],
    ['a field that comes twice', [0x0a, 1, 0x61, 0x0a, 1, 0x62], { conv_id: 'b' }],
    ['a target that changes', [0x12, 1, 0x61, 0x1a, 1, 0x62], { obj_id: 'b' }],
    ['a length that takes more bytes than it needs', [0x0a, 0x81, 0, 0x61], { conv_id: 'a' }],
    ['a flag of many bits', [0x28, ...Array(9).fill(0x80), 1], { is_sync: true }],
  ]
  for (const [name, given, more] of odd_rows) {
    test(name, () => {
      const { type: _, ...read } = readModify(Buffer.from(given))
      const none = { conv_id: '', ref: undefined, obj_id: undefined, node_id: '' }
      assert.deepEqual(read, { ...none, ...no_data, ...more })
    })
  }

  test('ListTasks', () => {
    const time = fc.option(fc.integer({ min: -(2 ** 40), max: 2 ** 50 }), { nil: undefined })
    const filter = fc.record({
      ...{ conv_id: text, node_id: text, status: text, ref_prefix: text },
      ...{ created_since_ms: time, created_until_ms: time, changed_since_ms: time },
      ...{ changed_until_ms: time, ended_since_ms: time, ended_until_ms: time },
      ...{ due_before_ms: time },
    })
    const page = fc.record({ limit: fc.integer(), cursor: text, newest_first: fc.boolean() })
    fc.assert(
      fc.property(filter, page, fc.option(bytes), (filter, page, where_json) => {
        const { limit, cursor, newest_first } = page
        const given = { ...filter, limit, cursor, newest_first }
        const query = Object.entries(given).filter(
          ([name, value]) =>
            value !== undefined && value !== '' && !(name === 'limit' && value === 0),
        )
        const sent = { filter: { ...filter, where_json: where_json ?? '' } }
        const more = { page_size: limit, page_token: cursor, newest_first }
        const read = readListTasks(ListTasks.requestSerialize({ ...sent, ...more } as never))
        assert.deepEqual(
          { ...read, where_json: read.where_json ?? Buffer.alloc(0) },
          { query: Object.fromEntries(query), where_json: where_json ?? Buffer.alloc(0) },
        )
      }),
    )
  })

  test('CountTasks', () => {
    const filter = fc.record({ conv_id: text, node_id: text, status: text })
    fc.assert(
      fc.property(filter, (filter) => {
        const given = Object.entries(filter).filter(([, value]) => value !== '')
        const read = readCountTasks(CountTasks.requestSerialize(filter))
        assert.deepEqual(read, Object.fromEntries(given))
      }),
    )
  })

  const broken_rows: [string, number[]][] = [
    ['a text longer than the message', [0x0a, 2, 0x61]],
    ['a nested text longer than its message', [0x12, 3, 0x12, 2, 0x61, 0x61]],
    ['a length without an end', [0x0a, 0xff]],
    ['a length of 4 GiB', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a number of eleven bytes', [0x08, ...Array(10).fill(0xff), 1]],
    ['a group', [0x0b]],
    ['a field of eight bytes cut short', [0x79, 1]],
    ['a text that is not UTF-8', [0x12, 1, 0xff]],
    [
      'more ops than may be, the last cut short',
      [0x0a, 0, 0x0a, 0, 0x0a, 0, 0x0a, 0, 0x0a, 0, 0x0a, 9],
    ],
  ]
  for (const [name, given] of broken_rows) {
    test(`not ${name}`, () =>
      assert.throws(() => readApplyOps(Buffer.from(given), ops_max), RangeError))
  }
})

describe('messages that we encode are decoded by the schema', () => {
  test('answers of one op', () => {
    fc.assert(
      fc.property(result, (given) => {
        const { ref, obj_id } = given
        const address = ref === null ? { obj_id } : { ref, obj_id, _ref: 'ref' }
        assert.deepEqual({ ...CreateTask.responseDeserialize(encodeAddress(given)) }, address)
        for (const with_history of [true, false]) {
          const task = given.task === undefined ? null : readTask(given.task, with_history)
          const bytes = encodeTask(given, with_history)
          assert.deepEqual(plain(GetTask.responseDeserialize(bytes)), { task })
        }
      }),
    )
  })

  test('answers of cancel and retry, and pages of tasks', () => {
    const was = fc.option(fc.record({ status: fc.constant('failed' as const), node_id: text }), {
      nil: undefined,
    })
    const number = fc.option(fc.maxSafeNat(), { nil: undefined })
    const page = fc.record({ reached_ms: number, scanned: fc.nat(), damaged: fc.array(text) })
    fc.assert(
      fc.property(result, was, page, maybe, text, (given, was, page, cursor, sorted_by) => {
        const { ref, obj_id, task } = given
        const action = { ...given, ...(was === undefined ? {} : { was }) }
        assert.deepEqual(plain(CancelTask.responseDeserialize(encodeAction(action))), {
          ...(ref === null ? { obj_id } : { ref, obj_id, _ref: 'ref' }),
          ...{ task: task === undefined ? null : readTask(task) },
          ...{ was_status: was?.status ?? '', was_node_id: was?.node_id ?? '' },
        })
        const tasks = task === undefined ? [] : [task, task]
        const { reached_ms, ...rest } = page
        const listed = encodePage({ ...page, tasks, cursor, sorted_by } as TaskPage)
        assert.deepEqual(plain(ListTasks.responseDeserialize(listed)), {
          ...{ ...rest, tasks: tasks.map((one) => readTask(one)), sorted_by },
          ...{ next_page_token: cursor ?? '' },
          ...(reached_ms === undefined
            ? {}
            : { reached_ms: String(reached_ms), _reached_ms: 'reached_ms' }),
        })
      }),
    )
  })

  test('changes, which WatchTasks asks for', () => {
    const request = fc.record({ from: text, conv_id: text, with_task: fc.boolean() })
    const change = fc.record({
      ...{ position: text, conv_id: text, obj_id: text, ref: fc.option(text), status: text },
      ...{ node_id: text, at_ms: fc.maxSafeNat() },
    })
    fc.assert(
      fc.property(request, change, result, (request, change, { task }) => {
        assert.deepEqual(readWatchTasks(WatchTasks.requestSerialize(request)), plain(request))
        const shown = task === undefined ? {} : { task }
        const bytes = encodeChange({ ...change, ...shown } as SeenChange)
        const { ref, ...rest } = change
        assert.deepEqual(plain(WatchTasks.responseDeserialize(bytes)), {
          ...{ ...rest, at_ms: String(change.at_ms) },
          ...(ref === null ? {} : { ref, _ref: 'ref' }),
          task: task === undefined ? null : readTask(task),
        })
        const { position } = change
        const only = WatchTasks.responseDeserialize(encodeChange({ position }))
        assert.deepEqual([only.position, only.obj_id, only.task], [position, '', null])
      }),
    )
  })

  test('counts', () => {
    const number = fc.option(fc.maxSafeNat(), { nil: undefined })
    const counts = fc.record({
      total: fc.maxSafeNat(),
      by_status: fc.record({
        ...{ processing: number, delayed: number, failed: number },
        ...{ processed: number, canceled: number },
      }),
    })
    const row = fc.record({ conv_id: text, title: text, node_id: maybe, counts })
    type Counts = typeof counts extends fc.Arbitrary<infer One> ? One : never
    const readCounts = ({ total, by_status }: Counts): object => {
      const given = Object.entries(by_status).filter(([, count]) => count !== undefined)
      return Object.fromEntries([
        ['total', String(total)],
        ...given.flatMap(([status, count]) => [
          [status, String(count)],
          [`_${status}`, status],
        ]),
      ])
    }
    fc.assert(
      fc.property(counts, fc.array(row, { maxLength: 3 }), (all, rows) => {
        const given = rows.map(({ counts, ...row }) => ({ ...row, ...counts }))
        const bytes = encodeCounts({ ...all, rows: given } as TaskCounts)
        assert.deepEqual(plain(CountTasks.responseDeserialize(bytes)), {
          counts: readCounts(all),
          rows: rows.map(({ conv_id, title, node_id = '', counts }) => ({
            ...{ conv_id, title, node_id, counts: readCounts(counts) },
          })),
        })
      }),
    )
  })

  test('answers of batches, to the highest number', () => {
    fc.assert(
      fc.property(results, uint64, text, text, (given, seq, proc, description) => {
        const ops: OpMessage[] = given.map(({ id }) => ({ id, kind: undefined }))
        const all = given.map((one) => one.result)
        const read = given.map((one) => ({ id: one.id, ...readResult(one.result) }))
        const applied = ApplyOps.responseDeserialize(encodeResults(ops, all))
        assert.deepEqual(plain(applied), { results: read })
        const number = seq <= Number.MAX_SAFE_INTEGER ? Number(seq) : seq
        for (const given_seq of [seq, number]) {
          const batch = { seq: given_seq, ops, request_key: '' }
          const bytes = encodeStreamResponse(
            { ...batch, op_count: batch.ops.length, bytes: 0 },
            { proc, description, results: all },
          )
          const wanted = { seq: String(seq), results: read, proc, description }
          assert.deepEqual(plain(StreamOps.responseDeserialize(bytes)), wanted)
        }
      }),
    )
  })
})

/** With the usual prototypes. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (value === null || typeof value !== 'object' || Buffer.isBuffer(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]))
}
