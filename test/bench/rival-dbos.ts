/**
 * DBOS on PostgreSQL, in the process of its callers. A create starts a workflow with the ref as its
 * id, which waits to receive a message; a resume sends one, and the workflow waits for the next.
 */
import { serveCalls } from './child.ts'
import { fillWith, loadPackage, type RivalCalls, runLoad } from './rival-calls.ts'
import { dataOf, refOf } from './workload.ts'

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
let stored_tasks = 0

const calls: RivalCalls = {
  async open({ packages, port, tasks }) {
    const { DBOS } = loadPackage<{ DBOS: Dbos }>(packages, '@dbos-inc/dbos-sdk')
    dbos = DBOS
    DBOS.setConfig({
      name: 'bench',
      systemDatabaseUrl: `postgres://postgres@127.0.0.1:${port}/dbos`,
      logLevel: 'error',
    })
    workflow = DBOS.registerWorkflow(waitForever, { name: 'wait' })
    await DBOS.launch()
    await fillWith(tasks, create)
    stored_tasks = tasks
  },

  run: (load) => runLoad(load, stored_tasks, { create, modify }),

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

async function modify(n: number): Promise<void> {
  await dbos?.send(refOf(n, 'random'), dataOf('modify', n), topic)
}
