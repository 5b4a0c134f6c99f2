/**
 * The stages of an op on the main thread of the engine's process: which source files belong to which.
 * Bundled scripts are mapped back to their sources.
 */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * A file belongs to the first stage with a beginning of its path. All other files, packages and
 * functions of Node count for the stage of their caller.
 */
export const stages: Readonly<Record<string, readonly string[]>> = {
  load: ['test/bench/'],
  authentication: [
    ...['authenticate', 'check-head', 'credentials', 'path'].map(
      (name) => `src/server/http/${name}`,
    ),
    ...['src/engine/access/', 'src/codec/signature'],
  ],
  parsing: ['src/codec/op', 'src/codec/request-body'],
  answer: ['src/server/http/reply', 'src/codec/response-body'],
  server: ['src/server/'],
  requests: [
    ...['src/engine/requests/', 'src/engine/task-calls'],
    ...['transaction-queue', 'admission'].map((name) => `src/engine/transactions/${name}`),
  ],
  replays: ['src/engine/replays/'],
  'op checks': ['src/engine/tasks/ops', 'src/engine/tasks/task-rules'],
  'task records, keys': ['src/engine/tasks/task-store'],
  'changes, history': [
    ...['src/engine/tasks/history', 'src/engine/transactions/change-log', 'src/engine/changes/'],
  ],
  transitions: ['src/engine/tasks/', 'src/process/'],
  background: ['src/engine/timers/', 'src/engine/transactions/background'],
  'rest of the engine': ['src/engine/'],
  memtables: ['src/store/changes/'],
  commit: ['src/store/group-commit', 'src/store/commit-log/tree'],
  'checkpoint hand-over': ['src/store/commit-log/checkpoint'],
  'commit log write': ['src/store/commit-log/'],
  'reads of the data file': ['src/store/lmdb/'],
}
const of_path = Object.entries(stages).flatMap(([stage, paths]) =>
  paths.map((path) => [`/${path}`, stage] as const),
)

/** Lines and columns from 0. */
export interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  readonly columnNumber: number
}

const natives: Readonly<Record<string, string>> = {
  '(idle)': 'wait: idle',
  writeBuffer: 'wait: synced write',
  '(garbage collector)': 'garbage collector',
}
export const isWait = (stage: string): boolean => stage.startsWith('wait: ')

/** Undefined for a frame that counts for the stage of its caller. */
export function stageOf(frame: CallFrame): string | undefined {
  const { functionName, url, lineNumber, columnNumber } = frame
  if (url === '' && Object.hasOwn(natives, functionName)) return natives[functionName]
  const found = url.startsWith('file:') ? mapOf(url)?.findEntry(lineNumber, columnNumber) : {}
  const path = found && 'originalSource' in found ? String(found.originalSource) : ''
  return of_path.find(([begin]) => path.includes(begin))?.[1]
}

const maps = new Map<string, SourceMap | undefined>()
const inline_map = 'sourceMappingURL=data:application/json;base64,'

function mapOf(url: string): SourceMap | undefined {
  if (!maps.has(url)) {
    const text = readFileSync(fileURLToPath(url), 'utf8')
    const at = text.lastIndexOf(inline_map)
    const json = Buffer.from(text.slice(at + inline_map.length), 'base64').toString()
    maps.set(url, at === -1 ? undefined : new SourceMap(JSON.parse(json)))
  }
  return maps.get(url)
}
