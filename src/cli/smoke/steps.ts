/**
 * What `smoke` tries, all at once, each on files of its own in one folder. Each step says in a
 * sentence what works or which fallback is in use, and throws where neither does.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parsePlain } from '../../codec/json.ts'
import { signatureOf } from '../../codec/signature.ts'
import { isFault } from '../../core/faults.ts'
import { isSupportedNode, supported_node } from '../../core/node-version.ts'
import { poll } from '../../core/poll.ts'
import { openEngine } from '../../open.ts'
import { connectOwner } from '../admin-connection.ts'
import { ok, type Verdict, warn } from '../doctor/check.ts'
import type { Env, Io } from '../io.ts'
import { startDemo } from './child.ts'

export interface SmokeSetup {
  readonly folder: string
  readonly io: Io
  readonly env: Env
  /** Called with each child, so that none outlives a step that is late. */
  onChild(kill: () => void): void
}

export const smokeSteps: readonly (readonly [
  name: string,
  run: (setup: SmokeSetup) => Promise<Verdict>,
])[] = [
  ['node', async ({ io }) => nodeVerdict(io.node)],
  ['memory', () => memory()],
  ['data file', ({ folder }) => dataFile(join(folder, 'own.lmdb'))],
  ['lock', ({ folder }) => lock(join(folder, 'locked.lmdb'))],
  ['disk writes', ({ folder }) => diskWrites(join(folder, 'written.lmdb'))],
  ['file watching', ({ folder, io }) => watching(join(folder, 'watched'), io)],
  ['kill', killed],
  ['socket, stop', stopped],
]

const conv_id = 1234

function nodeVerdict(node: string): Verdict {
  const place = `${process.platform}-${process.arch}`
  if (isSupportedNode(node)) return ok(`${node} on ${place}`)
  return warn(`${node} on ${place} is not tested`, `run it on Node ${supported_node}`)
}

async function memory(): Promise<Verdict> {
  const engine = await openEngine(':memory:')
  await engine.close()
  return ok('an engine in memory opens and closes')
}

async function dataFile(path: string): Promise<Verdict> {
  for (let times = 0; times < 2; times++) {
    const engine = await openEngine(path)
    if (times === 0) await engine.users.add({ id: '1' })
    else if ((await engine.users.list()).length !== 1) throw new Error('a user is gone')
    await engine.close()
  }
  return ok('the native file of LMDB loads; what was written is read after a reopening')
}

async function lock(path: string): Promise<Verdict> {
  const engine = await openEngine(path)
  try {
    const second = await openEngine(path).catch((error: unknown) => error)
    if (isFault(second) && second.code === 'file_held') return ok('a second opener is refused')
    if (!(second instanceof Error)) await (second as typeof engine).close()
    throw new Error('a second opener got the file: never share it')
  } finally {
    await engine.close()
  }
}

async function diskWrites(path: string): Promise<Verdict> {
  const refused: string[] = []
  const note = (fields: { readonly flag?: unknown }): void => {
    if (typeof fields.flag === 'string') refused.push(fields.flag)
  }
  const engine = await openEngine(path, {
    logger: { debug: note, info: note, warn: note, error: note },
  })
  await engine.users.add({ id: '1' })
  await engine.close()
  if (process.platform !== 'linux') return ok('a sync after each write')
  if (refused.length === 0) return ok('O_DSYNC and O_DIRECT')
  const instead = refused.includes('O_DSYNC') ? 'a sync after each write' : 'the page cache'
  return warn(`without ${refused.join(' and ')}: by ${instead}`, 'nothing: as safe, but slower')
}

/** By polling, as for certificates, variables and keys, so it is the same on every file system. */
async function watching(path: string, { clock }: Io): Promise<Verdict> {
  await writeFile(path, 'first')
  let stop = (): void => {}
  const seen = new Promise<void>((resolve, reject) => {
    stop = poll<string>({
      ...{ clock, every_ms: 50, first: 'first' },
      read: () => readFile(path, 'utf8'),
      isSame: (one, other) => one === other,
      use: () => resolve(),
      onBroken: reject,
    })
  })
  try {
    await writeFile(path, 'second')
    await seen
  } finally {
    stop()
  }
  return ok('a changed file is seen, by polling')
}

/** An answered op is there after SIGKILL. */
async function killed({ folder, io, env, onChild }: SmokeSetup): Promise<Verdict> {
  const db = join(folder, 'killed.lmdb')
  const server = await startDemo(io, env, db)
  onChild(() => server.child.kill('SIGKILL'))
  const op = { type: 'create', obj: 'task', conv_id, ref: 'smoke', data: {} }
  const body = JSON.stringify({ ops: [op] })
  const time = String(Math.floor(io.clock.now_ms() / 1_000))
  const signature = signatureOf(time, server.secret, body)
  const url = `${server.url}/api/1/json/13000/${time}/${signature}`
  const answer = await (await fetch(url, { method: 'POST', body })).text()
  const { ops } = parsePlain(answer) as { readonly ops?: readonly { readonly proc: string }[] }
  if (ops?.[0]?.proc !== 'ok') throw new Error(`the signed request was answered: ${answer}`)
  await server.end('SIGKILL')
  const engine = await openEngine(db, { background: false })
  const task = await engine.task({ conv_id, ref: 'smoke' })
  await engine.close()
  if (task === undefined) throw new Error('the task that was answered with ok is gone')
  return ok('a task that a signed request made is there after the server was killed')
}

/** A verb reaches the server that holds the file; SIGTERM ends it with everything answered. */
async function stopped({ folder, io, env, onChild }: SmokeSetup): Promise<Verdict> {
  const db = join(folder, 'stopped.lmdb')
  const server = await startDemo(io, env, db)
  onChild(() => server.child.kill('SIGKILL'))
  const admin = await connectOwner(db)
  if (admin === undefined) throw new Error('the server has no socket that answers')
  try {
    const found = await admin.call('process.list', {})
    if (found.length !== 1) throw new Error(`over the socket it has ${found.length} processes`)
  } finally {
    await admin.close()
  }
  const exit = await server.end('SIGTERM')
  const reached = 'a verb reaches the server over its socket'
  // Windows has no SIGTERM to catch; the kill above has shown that nothing is lost.
  if (process.platform === 'win32') return ok(`${reached}; a stop is a kill here, Ctrl+C drains`)
  if (exit !== 0) throw new Error(`SIGTERM ended the server with ${exit}`)
  return ok(`${reached}; SIGTERM ends it with exit 0`)
}
