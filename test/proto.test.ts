/**
 * The .proto: its numbers never change, buf accepts it, it breaks nothing that a release shipped, and
 * the generated files are current.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { top } from './support/package-folder.ts'

const proto = readFileSync(join(top, 'proto/conveyor/v1/task_service.proto'), 'utf8')
const buf = join(top, 'node_modules/.bin/buf')
const no_buf = existsSync(buf) ? false : 'buf is not installed'

/** Each message's fields: label, type, name = number. Rows are added; none is ever changed. */
const messages: Readonly<Record<string, readonly string[]>> = {
  CreateTaskRequest: [
    'string conv_id = 1',
    'optional string ref = 2',
    'bytes data_json = 3',
    'string request_key = 4',
  ],
  CreateTaskResponse: ['optional string ref = 1', 'string obj_id = 2'],
  ModifyTaskRequest: [
    'string conv_id = 1',
    'target: string ref = 2',
    'target: string obj_id = 3',
    'bytes data_json = 4',
    'bool is_sync = 5',
    'string node_id = 6',
    'string request_key = 7',
  ],
  ModifyTaskResponse: ['optional string ref = 1', 'string obj_id = 2'],
  GetTaskRequest: [
    'string conv_id = 1',
    'target: string ref = 2',
    'target: string obj_id = 3',
    'bool with_history = 4',
  ],
  GetTaskResponse: ['Task task = 1'],
  WaitTaskRequest: [
    'string conv_id = 1',
    'target: string ref = 2',
    'target: string obj_id = 3',
    'bool with_history = 4',
  ],
  WaitTaskResponse: ['Task task = 1'],
  CancelTaskRequest: ['string conv_id = 1', 'target: string ref = 2', 'target: string obj_id = 3'],
  CancelTaskResponse: [
    'optional string ref = 1',
    'string obj_id = 2',
    'Task task = 3',
    'string was_status = 4',
    'string was_node_id = 5',
  ],
  RetryTaskRequest: [
    'string conv_id = 1',
    'target: string ref = 2',
    'target: string obj_id = 3',
    'string node_id = 4',
  ],
  RetryTaskResponse: [
    'optional string ref = 1',
    'string obj_id = 2',
    'Task task = 3',
    'string was_status = 4',
    'string was_node_id = 5',
  ],
  TaskFilter: [
    'string conv_id = 1',
    'string node_id = 2',
    'string status = 3',
    'string ref_prefix = 4',
    'optional int64 created_since_ms = 5',
    'optional int64 created_until_ms = 6',
    'optional int64 changed_since_ms = 7',
    'optional int64 changed_until_ms = 8',
    'optional int64 ended_since_ms = 9',
    'optional int64 ended_until_ms = 10',
    'optional int64 due_before_ms = 11',
    'bytes where_json = 12',
  ],
  ListTasksRequest: [
    'TaskFilter filter = 1',
    'int32 page_size = 2',
    'string page_token = 3',
    'bool newest_first = 4',
  ],
  ListTasksResponse: [
    'repeated Task tasks = 1',
    'string next_page_token = 2',
    'int32 scanned = 3',
    'string sorted_by = 4',
    'optional int64 reached_ms = 5',
    'repeated string damaged = 6',
  ],
  CountTasksRequest: ['string conv_id = 1', 'string node_id = 2', 'string status = 3'],
  TaskCounts: [
    'int64 total = 1',
    'optional int64 processing = 2',
    'optional int64 delayed = 3',
    'optional int64 failed = 4',
    'optional int64 processed = 5',
    'optional int64 canceled = 6',
  ],
  CountRow: [
    'string conv_id = 1',
    'string title = 2',
    'string node_id = 3',
    'TaskCounts counts = 4',
  ],
  CountTasksResponse: ['TaskCounts counts = 1', 'repeated CountRow rows = 2'],
  WatchTasksRequest: ['string from = 1', 'string conv_id = 2', 'bool with_task = 3'],
  WatchTasksResponse: [
    'string position = 1',
    'string conv_id = 2',
    'string obj_id = 3',
    'optional string ref = 4',
    'string status = 5',
    'string node_id = 6',
    'int64 at_ms = 7',
    'Task task = 8',
  ],
  Op: [
    'string id = 1',
    'kind: CreateTaskRequest create = 2',
    'kind: ModifyTaskRequest modify = 3',
    'kind: GetTaskRequest show = 4',
  ],
  OpResult: [
    'string id = 1',
    'optional string ref = 2',
    'string obj_id = 3',
    'string proc = 4',
    'string description = 5',
    'Task task = 6',
  ],
  ApplyOpsRequest: ['repeated Op ops = 1', 'string request_key = 2'],
  ApplyOpsResponse: ['repeated OpResult results = 1'],
  ApplyJsonRequest: ['bytes body_json = 1', 'string request_key = 2'],
  ApplyJsonResponse: ['bytes answer_json = 1'],
  StreamOpsRequest: ['uint64 seq = 1', 'repeated Op ops = 2', 'string request_key = 3'],
  StreamOpsResponse: [
    'uint64 seq = 1',
    'repeated OpResult results = 2',
    'string proc = 3',
    'string description = 4',
  ],
  Task: [
    'string obj_id = 1',
    'string conv_id = 2',
    'optional string ref = 3',
    'string status = 4',
    'string user_id = 5',
    'int64 create_time_ms = 6',
    'int64 change_time_ms = 7',
    'string node_id = 8',
    'string node_prev_id = 9',
    'bytes data_json = 10',
    'StatusDetails status_details = 11',
    'repeated HistoryEntry history = 12',
  ],
  HistoryEntry: [
    'string node_id = 1',
    'int64 at_ms = 2',
    'string why = 3',
    'string by = 4',
    'string tag = 5',
  ],
  StatusDetails: ['string tag = 1', 'string description = 2'],
}

const rpcs = [
  'CreateTask(CreateTaskRequest) returns (CreateTaskResponse)',
  'ModifyTask(ModifyTaskRequest) returns (ModifyTaskResponse)',
  'ApplyOps(ApplyOpsRequest) returns (ApplyOpsResponse)',
  'ApplyJson(ApplyJsonRequest) returns (ApplyJsonResponse)',
  'StreamOps(stream StreamOpsRequest) returns (stream StreamOpsResponse)',
  'GetTask(GetTaskRequest) returns (GetTaskResponse)',
  'WaitTask(WaitTaskRequest) returns (WaitTaskResponse)',
  'CancelTask(CancelTaskRequest) returns (CancelTaskResponse)',
  'RetryTask(RetryTaskRequest) returns (RetryTaskResponse)',
  'ListTasks(ListTasksRequest) returns (ListTasksResponse)',
  'CountTasks(CountTasksRequest) returns (CountTasksResponse)',
  'WatchTasks(WatchTasksRequest) returns (stream WatchTasksResponse)',
]

describe('the contract', () => {
  const found = fieldsOf(proto)
  for (const [message, fields] of Object.entries(messages)) {
    test(message, () => assert.deepEqual(found.get(message), fields))
  }
  test('every message is in this table', () => {
    assert.deepEqual([...found.keys()].sort(), Object.keys(messages).sort())
  })
  test('the rpcs, and the name by which they are called', () => {
    assert.match(proto, /^package conveyor\.v1;$/m)
    assert.match(proto, /^service TaskService \{$/m)
    assert.deepEqual(
      [...proto.matchAll(/^ {2}rpc (.*);$/gm)].map(([, rpc]) => rpc),
      rpcs,
    )
  })
})

describe('buf', () => {
  test('lint: standard rules, and a comment for everything', { skip: no_buf }, () => {
    assert.equal(runBuf('lint', 'proto'), '')
  })
  test('format', { skip: no_buf }, () => assert.equal(runBuf('format', '--diff', 'proto'), ''))

  const golden = 'test/golden/proto'
  test('it breaks nothing of the stored release', { skip: no_buf }, () => {
    assert.equal(runBuf('breaking', 'proto', '--against', golden), '')
  })
  /** [what a change does to the proto, as text and its replacement, what buf says] */
  const breaking: readonly (readonly [string, string | RegExp, string, RegExp])[] = [
    ['a changed number', 'bool is_sync = 5', 'bool is_sync = 8', /is_sync/],
    ['another type', 'int64 create_time_ms', 'string create_time_ms', /create_time_ms/],
    ['an rpc that is gone', /^ {2}rpc GetTask.*\n/m, '', /GetTask/],
    ['another name', 'string node_prev_id', 'string node_before_id', /node_prev_id/],
  ]
  for (const [what, text, instead, says] of breaking) {
    test(`it reports ${what}`, { skip: no_buf }, () => {
      const folder = mkdtempSync(join(tmpdir(), 'conveyor-proto-'))
      cpSync(join(top, 'proto'), folder, { recursive: true })
      const changed = proto.replace(text, instead)
      assert.notEqual(changed, proto)
      writeFileSync(join(folder, 'conveyor/v1/task_service.proto'), changed)
      assert.match(runBuf('breaking', folder, '--against', golden), says)
      rmSync(folder, { recursive: true })
    })
  }
})

test('the generated files are current: else `npm run proto`', () => {
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-generated-'))
  execFileSync(process.execPath, ['--import', 'tsx', join(top, 'bin/proto.ts'), folder], {
    cwd: top,
  })
  assert.deepEqual(readAll(folder), readAll(join(top, 'src/server/grpc/generated')))
  rmSync(folder, { recursive: true })
})

/** Message → its fields, those of a oneof behind its name. */
function fieldsOf(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>()
  let fields: string[] = []
  let oneof = ''
  for (const line of text.split('\n')) {
    const message = /^message (\w+) \{$/.exec(line)?.[1]
    if (message !== undefined) {
      fields = []
      found.set(message, fields)
    }
    oneof = /^ {2}oneof (\w+) \{$/.exec(line)?.[1] ?? (line === '  }' ? '' : oneof)
    const field = /^ +((?:\w+ )?\w+ \w+ = \d+);$/.exec(line)?.[1]
    if (field !== undefined) fields.push(oneof === '' ? field : `${oneof}: ${field}`)
  }
  return found
}

/** Its output, which is empty on success. */
function runBuf(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(buf, args, { cwd: top, encoding: 'utf8' })
  const output = `${stdout}${stderr}`.trim()
  return status === 0 || output !== '' ? output : `exit ${status}`
}

function readAll(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter((name) => name.endsWith('.ts'))
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}
