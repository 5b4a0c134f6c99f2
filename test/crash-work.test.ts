/**
 * A process is killed with calls, code and handlers in progress, again and again on one file. After
 * it could finish, every task has ended, each of its calls and handlers began at least once, each
 * call at most once in a process and always under one key, and each state change was made once.
 *
 * `CONVEYOR_SLOW=1` runs a hundred rounds of each form.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { it } from 'node:test'
import type { Task } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api.ts'
import { openEngine } from '../src/open.ts'
import { callServer } from './support/call-server.ts'
import { commitLogLeft, crash_forms } from './support/commit-log-crash.ts'
import {
  type ChildReport,
  conv_id,
  handled,
  handlerThat,
  marks,
  steps,
} from './support/crash-jobs.ts'
import { buildChild } from './support/store-child.ts'
import { tasksOf } from './support/tasks-of.ts'

const rounds = process.env.CONVEYOR_SLOW === '1' ? 100 : 2
const all = 1_000_000
const done = { changes: 3, answer: 1, code: 2, __conveyor_copy_task_result__: 'ok' }

for (const { form, edits } of crash_forms) {
  it(`${form}: ${rounds} kills with work in progress: nothing lost, nothing twice`, {
    timeout: 1_200_000,
  }, async (t) => {
    const child = await buildChild('crash-jobs-child.ts', edits)
    const path = join(child.folder, 'tasks.lmdb')
    /** Task → the processes that called for it, and its key. */
    const called = new Map<string, { readonly by: number[]; readonly keys: Set<unknown> }>()
    const handled_tasks = new Set<string>()
    const made = new Set<string>()
    let process_at = 0
    const server = await callServer((asked, _request, response) => {
      const { id } = JSON.parse(asked.body) as { id: string }
      const calls = called.get(id) ?? { by: [], keys: new Set() }
      called.set(id, calls)
      calls.by.push(process_at)
      calls.keys.add(asked.headers['idempotency-key'])
      setTimeout(() => response.writeHead(200).end('{"answer":1}'), Math.random() * 30)
    })
    const began_ms = performance.now()
    let cut_off = 0
    let [unmerged, in_merge] = [0, 0]
    try {
      for (let round = 0; round < rounds; round++) {
        for (const report of await runAndKill([child.script, path, server.url])) {
          for (const obj_id of report.made ?? []) made.add(obj_id)
          if (report.handled !== undefined) handled_tasks.add(report.handled)
        }
        process_at++
        const left = await commitLogLeft(path)
        unmerged += left.unmerged
        if (left.in_checkpoint) in_merge++
        const engine = await openEngine(path, { timers: false })
        const { breaches, counts } = await engine.check()
        assert.deepEqual(breaches, [], `round ${round}`)
        cut_off += counts.outbox ?? 0
        await engine.close()
      }
      const engine = await openEngine(path, { allow_hosts: [server.host] })
      engine.handle(
        handled,
        handlerThat((obj_id) => handled_tasks.add(obj_id)),
      )
      const tasks = await finished(engine)
      assert.deepEqual((await engine.check()).breaches, [])
      const marked = marksOf(await tasksOf(engine, marks, { limit: all }))
      await engine.close()
      const found = new Set(tasks.map(({ obj_id }) => obj_id))
      assert.deepEqual(
        [...made].filter((obj_id) => !found.has(obj_id)),
        [],
        'tasks lost',
      )
      for (const { obj_id, node_id, data } of tasks) {
        assert.equal(node_id, 'end', JSON.stringify(data))
        assert.deepEqual(data, { ...done, handler: obj_id })
        assert.deepEqual(marked.get(obj_id)?.sort(), [...steps].sort(), `the marks of ${obj_id}`)
        const { by = [], keys } = called.get(obj_id) ?? {}
        assert.ok(by.length > 0, 'never called')
        assert.equal(new Set(by).size, by.length, 'called twice by one process')
        assert.equal(keys?.size, 1, 'called under two keys')
        assert.ok(handled_tasks.has(obj_id), 'never handled')
      }
      assert.equal(marked.size, tasks.length)
      assert.ok(cut_off > 0, 'no kill met any work')
      const seconds = Math.round((performance.now() - began_ms) / 1000)
      t.diagnostic(
        `${rounds} kills in ${seconds} s: ${tasks.length} tasks, ${cut_off} pieces of work cut off ` +
          `or listed, ${[...called.values()].flatMap(({ by }) => by).length} calls; 0 lost, 0 twice; ` +
          `${unmerged} groups left to the commit log, ${in_merge} kills in a merge`,
      )
    } finally {
      await server.close()
      await child.remove()
    }
  })
}

/** What the child reported until it was killed, at a moment of chance after its first words. */
async function runAndKill(args: readonly string[]): Promise<ChildReport[]> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const reports: ChildReport[] = []
  let said = ''
  let timer: NodeJS.Timeout | undefined
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said += text
  })
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    timer ??= setTimeout(() => child.kill('SIGKILL'), 500 * Math.random())
    try {
      reports.push(JSON.parse(line) as ChildReport)
    } catch {
      // The kill has cut this line off.
    }
  })
  const [signal] = await Promise.all([
    new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal))),
    new Promise((resolve) => lines.once('close', resolve)),
  ])
  clearTimeout(timer)
  assert.equal(signal, 'SIGKILL', `the child ended by itself: ${said}`)
  return reports
}

/** Every task, once none of them is live. */
async function finished(engine: Engine): Promise<Task[]> {
  while ((await tasksOf(engine, conv_id, { limit: 1 })).length > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return tasksOf(engine, conv_id, { status: 'processed', limit: all })
}

/** By task, the steps that were marked. */
function marksOf(tasks: readonly Task[]): Map<string, string[]> {
  const marked = new Map<string, string[]>()
  for (const { data } of tasks) {
    const { of, step } = data as { of: string; step: string }
    marked.set(of, [...(marked.get(of) ?? []), step])
  }
  return marked
}
