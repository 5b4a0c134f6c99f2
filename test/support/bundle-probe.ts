/**
 * A program of someone who has the bundle and lmdb and nothing else. A test strips its types and
 * runs it by plain `node` beside the bundle; it prints what it saw as one line of JSON.
 *
 * `probe.mjs FILE` opens the file, does a day's work in it and meanwhile starts itself again as
 * `probe.mjs FILE second`, which says only why it could not open.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type * as Http from '../../src/http.ts'
import type * as Index from '../../src/index.ts'

type Bundle = typeof Index & typeof Http & { readonly examples: Readonly<Record<string, unknown>> }

export interface Seen {
  readonly exports: readonly string[]
  readonly examples: readonly string[]
  readonly version: string
  readonly created: string
  readonly second: string
  readonly answer: unknown
  /** What code with a library made. */
  readonly hash: string | undefined
  readonly status: string | undefined
  readonly reopened: string | undefined
  readonly breaches: readonly string[]
  /** Tasks in the copy of a file with a commit log, made by the checkpoint process. */
  readonly merged: number | undefined
  readonly hidden: readonly string[]
}

/** Enough for the checkpoint process to be asked, which a copy does at once. */
const logged_tasks = 8_000
const name = './conveyor.mjs'
const bundle = (await import(name)) as Bundle
const [file = '', second] = process.argv.slice(2)
console.log(JSON.stringify(second === undefined ? await work() : await whyNot()))

async function work(): Promise<Seen> {
  const engine = await bundle.openEngine(file)
  await engine.processes.put(bundle.examples['callback.conv.json'])
  const created = await engine.create({ conv_id: 1234, ref: 'order-1', data: { amount: 120 } })
  const self = fileURLToPath(import.meta.url)
  const told = execFileSync(process.execPath, [self, file, 'second'], { encoding: 'utf8' })

  const { id, secret } = await engine.users.add()
  await engine.processes.share(1234, id)
  const server = await bundle.serveHttp(engine, { port: 0 })
  const answer = await postSigned(server.url, id, secret, {
    ops: [{ type: 'modify', obj: 'task', conv_id: 1234, ref: 'order-1', data: { paid: true } }],
  })
  await server.drain()
  const { obj_id } = created as { obj_id: string }
  const task = await engine.task({ conv_id: 1234, obj_id })
  const hash = await hashedByCode(engine)
  const { breaches } = await engine.check()
  await engine.close()

  const merged = await withCommitLog(`${file}.logged`)
  const again = await bundle.openEngine(file)
  const kept = await again.task({ conv_id: 1234, obj_id })
  await again.close()
  return {
    exports: Object.keys(bundle).sort(),
    examples: Object.keys(bundle.examples),
    version: bundle.version,
    created: created.proc,
    second: JSON.parse(told) as string,
    answer,
    hash,
    status: task?.status,
    reopened: kept?.data_text,
    breaches,
    merged,
    hidden: await missing(['fs-native-extensions', 're2js', 'fast-json-stable-stringify']),
  }
}

async function hashedByCode(engine: Index.Engine): Promise<string | undefined> {
  const src = 'require("libs/sha1.js"); data.hash = CryptoJS.SHA1("x").toString()'
  const logics = [
    { type: 'api_code', lang: 'js', src },
    { type: 'go', to_node_id: 'end' },
  ]
  const end = { id: 'end', obj_type: 2, options: { save_task: true } }
  const nodes = [{ id: 'start', obj_type: 1, condition: { logics } }, end]
  await engine.processes.put({ obj_id: 5, scheme: { nodes } })
  const changes = engine.changes({ conv_id: 5 })
  const { obj_id = '' } = await engine.create({ conv_id: 5, data: {} })
  for await (const { node_id } of changes) if (node_id === 'end') break
  const task = await engine.task({ conv_id: 5, obj_id })
  return JSON.parse(task?.data_text ?? '{}').hash
}

async function withCommitLog(path: string): Promise<number | undefined> {
  const engine = await bundle.openEngine(path)
  await engine.processes.put(bundle.examples['callback.conv.json'])
  for (let made = 0; made < logged_tasks; made += 1_000) {
    const data = { text: 'x'.repeat(200) }
    const op = { type: 'create', obj: 'task', conv_id: 1234, data }
    await engine.apply(Array.from({ length: 1_000 }, () => op))
  }
  await engine.backup(`${path}.copy`)
  await engine.close()
  const copy = await bundle.openEngine(`${path}.copy`)
  const [process_info] = await copy.processes.list()
  await copy.close()
  return process_info?.tasks
}

async function whyNot(): Promise<string> {
  try {
    await bundle.openEngine(file)
    return 'opened'
  } catch (error) {
    return bundle.isFault(error) ? error.code : String(error)
  }
}

async function postSigned(
  url: string,
  user: string,
  secret: string,
  request: unknown,
): Promise<unknown> {
  const body = JSON.stringify(request)
  const time = Math.floor(Date.now() / 1000)
  const sum = createHash('sha1').update(`${time}${secret}${body}${secret}`).digest('hex')
  const post = { method: 'POST', body }
  const response = await fetch(`${url}/api/1/json/${user}/${time}/${sum}`, post)
  return response.json()
}

/** Those of `packages` that cannot be found from here. */
async function missing(packages: readonly string[]): Promise<string[]> {
  const codes = await Promise.all(
    packages.map((one) => import(one).then(() => 'found').catch(({ code }) => code)),
  )
  return packages.filter((_, at) => codes[at] === 'ERR_MODULE_NOT_FOUND')
}
