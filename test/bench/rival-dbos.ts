/**
 * DBOS on PostgreSQL, in the process of its caller. A create starts a workflow under its ref, which
 * rests in a receive; a resume sends to it by its ref, and it goes on to the next receive.
 */
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { fillWith, loadPackage, type RivalCalls } from './rival-calls.ts'
import { dataOf, opSource, refOf } from './workload.ts'

type Workflow = (data: object) => Promise<void>

interface Dbos {
  setConfig(config: object): void
  registerWorkflow(workflow: Workflow, config: { name: string }): Workflow
  launch(): Promise<void>
  shutdown(): Promise<void>
  startWorkflow(
    workflow: Workflow,
    params: { workflowID: string },
  ): (data: object) => Promise<unknown>
  send(workflow_id: string, message: object, topic: string): Promise<void>
  recv(topic: string, timeout_s: number): Promise<object | null>
}

const topic = 'resume'
const wait_s = 3_600
let dbos: Dbos | undefined
let workflow: Workflow | undefined
let found = 0

const calls: RivalCalls = {
  async open({ packages, port, tasks }) {
    const { DBOS } = loadPackage<{ DBOS: Dbos }>(packages, '@dbos-inc/dbos-sdk')
    dbos = DBOS
    DBOS.setConfig({
      name: 'bench',
      systemDatabaseUrl: `postgres://bench@127.0.0.1:${port}/dbos`,
      logLevel: 'error',
    })
    workflow = DBOS.registerWorkflow(waitForever, { name: 'wait' })
    await DBOS.launch()
    await fillWith(tasks, create)
    found = tasks
  },

  run({ verb, callers, ...span }) {
    const source = opSource(found, 'random')
    return closedLoop({ callers, ops: 1, ...span }, async () => {
      const n = source.take(verb, 1)[0] as number
      if (verb === 'create') await create(n)
      else await dbos?.send(refOf(n, 'random'), dataOf('modify', n), topic)
    })
  },

  async close() {},
}

serveCalls(calls)

async function waitForever(data: object): Promise<void> {
  for (let known = data; ; ) known = { ...known, ...(await dbos?.recv(topic, wait_s)) }
}

async function create(n: number): Promise<void> {
  const params = { workflowID: refOf(n, 'random') }
  await (dbos as Dbos).startWorkflow(workflow as Workflow, params)(dataOf('create', n))
}
