/**
 * DBOS. A create starts a workflow with the ref as its id, which waits to receive a message; a
 * callback sends the message, and the workflow ends with it in its result, after the answer.
 */
import { loadPackage } from '../rival-packages.ts'
import { serveLives } from './lives-calls.ts'

type Workflow = (data: object) => Promise<object>

interface Dbos {
  setConfig(config: object): void
  registerWorkflow(workflow: Workflow, config: { name: string }): Workflow
  launch(): Promise<void>
  shutdown(): Promise<void>
  startWorkflow(
    workflow: Workflow,
    params: { workflowID: string },
  ): (data: object) => Promise<{ getResult(): Promise<unknown> }>
  send(workflow_id: string, message: object, topic: string): Promise<void>
  recv(topic: string, timeout_s: number): Promise<object | null>
}

const topic = 'callback'
const wait_s = 3_600

serveLives(async ({ packages, host, port }) => {
  const { DBOS } = loadPackage<{ DBOS: Dbos }>(packages, '@dbos-inc/dbos-sdk')
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: `postgres://postgres@${host}:${port}/dbos`,
    logLevel: 'error',
  })
  const workflow = DBOS.registerWorkflow(
    async (data) => ({ ...data, ...(await DBOS.recv(topic, wait_s)) }),
    { name: 'life' },
  )
  await DBOS.launch()
  let ended = 0
  return {
    async create(workflowID, data) {
      const handle = await DBOS.startWorkflow(workflow, { workflowID })(data)
      void handle.getResult().then(() => ended++)
    },
    ended: () => ended,
    callback: (workflow_id, data) => DBOS.send(workflow_id, data, topic),
    // It would wait for all workflows that wait.
    close: async () => {},
  }
})
