// Generated from proto/conveyor/v1/task_service.proto by `npm run proto`.

/** As text, so that it is not rounded. */
export type Int64 = `${bigint}`

export interface CreateTaskRequest {
  conv_id: string
  ref?: string
  data_json: Buffer
  request_key: string
}

export interface CreateTaskResponse {
  ref?: string
  obj_id: string
}

export interface ModifyTaskRequest {
  conv_id: string
  ref?: string
  obj_id?: string
  data_json: Buffer
  is_sync: boolean
  node_id: string
  request_key: string
}

export interface ModifyTaskResponse {
  ref?: string
  obj_id: string
}

export interface GetTaskRequest {
  conv_id: string
  ref?: string
  obj_id?: string
  with_history: boolean
}

export interface GetTaskResponse {
  task: Task | null
}

export interface WaitTaskRequest {
  conv_id: string
  ref?: string
  obj_id?: string
  with_history: boolean
}

export interface WaitTaskResponse {
  task: Task | null
}

export interface CancelTaskRequest {
  conv_id: string
  ref?: string
  obj_id?: string
}

export interface CancelTaskResponse {
  ref?: string
  obj_id: string
  task: Task | null
  was_status: string
  was_node_id: string
}

export interface RetryTaskRequest {
  conv_id: string
  ref?: string
  obj_id?: string
  node_id: string
}

export interface RetryTaskResponse {
  ref?: string
  obj_id: string
  task: Task | null
  was_status: string
  was_node_id: string
}

export interface TaskFilter {
  conv_id: string
  node_id: string
  status: string
  ref_prefix: string
  created_since_ms?: Int64
  created_until_ms?: Int64
  changed_since_ms?: Int64
  changed_until_ms?: Int64
  ended_since_ms?: Int64
  ended_until_ms?: Int64
  due_before_ms?: Int64
  where_json: Buffer
}

export interface ListTasksRequest {
  filter: TaskFilter | null
  page_size: number
  page_token: string
  newest_first: boolean
}

export interface ListTasksResponse {
  tasks: Task[]
  next_page_token: string
  scanned: number
  sorted_by: string
  reached_ms?: Int64
  damaged: string[]
}

export interface CountTasksRequest {
  conv_id: string
  node_id: string
  status: string
}

export interface TaskCounts {
  total: Int64
  processing?: Int64
  delayed?: Int64
  failed?: Int64
  processed?: Int64
  canceled?: Int64
}

export interface CountRow {
  conv_id: string
  title: string
  node_id: string
  counts: TaskCounts | null
}

export interface CountTasksResponse {
  counts: TaskCounts | null
  rows: CountRow[]
}

export interface WatchTasksRequest {
  from: string
  conv_id: string
  with_task: boolean
}

export interface WatchTasksResponse {
  position: string
  conv_id: string
  obj_id: string
  ref?: string
  status: string
  node_id: string
  at_ms: Int64
  task: Task | null
}

export interface Op {
  id: string
  create?: CreateTaskRequest | null
  modify?: ModifyTaskRequest | null
  show?: GetTaskRequest | null
}

export interface OpResult {
  id: string
  ref?: string
  obj_id: string
  proc: string
  description: string
  task: Task | null
}

export interface ApplyOpsRequest {
  ops: Op[]
  request_key: string
}

export interface ApplyOpsResponse {
  results: OpResult[]
}

export interface ApplyJsonRequest {
  body_json: Buffer
  request_key: string
}

export interface ApplyJsonResponse {
  answer_json: Buffer
}

export interface StreamOpsRequest {
  seq: Int64
  ops: Op[]
  request_key: string
}

export interface StreamOpsResponse {
  seq: Int64
  results: OpResult[]
  proc: string
  description: string
}

export interface Task {
  obj_id: string
  conv_id: string
  ref?: string
  status: string
  user_id: string
  create_time_ms: Int64
  change_time_ms: Int64
  node_id: string
  node_prev_id: string
  data_json: Buffer
  status_details: StatusDetails | null
  history: HistoryEntry[]
}

export interface HistoryEntry {
  node_id: string
  at_ms: Int64
  why: string
  by: string
  tag: string
}

export interface StatusDetails {
  tag: string
  description: string
}

/** The request and the response of each rpc. */
export interface Rpcs {
  CreateTask: [CreateTaskRequest, CreateTaskResponse]
  ModifyTask: [ModifyTaskRequest, ModifyTaskResponse]
  ApplyOps: [ApplyOpsRequest, ApplyOpsResponse]
  ApplyJson: [ApplyJsonRequest, ApplyJsonResponse]
  StreamOps: [StreamOpsRequest, StreamOpsResponse]
  GetTask: [GetTaskRequest, GetTaskResponse]
  WaitTask: [WaitTaskRequest, WaitTaskResponse]
  CancelTask: [CancelTaskRequest, CancelTaskResponse]
  RetryTask: [RetryTaskRequest, RetryTaskResponse]
  ListTasks: [ListTasksRequest, ListTasksResponse]
  CountTasks: [CountTasksRequest, CountTasksResponse]
  WatchTasks: [WatchTasksRequest, WatchTasksResponse]
}
