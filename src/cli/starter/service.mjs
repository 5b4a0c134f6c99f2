import { createServer } from 'node:http'
import { openEngine } from 'conveyor-engine'
import { serveOperator } from 'conveyor-engine/operator'
import { handlers, order } from './order.mjs'

const { PORT = 8080, OPERATOR_PORT = 8081, CONVEYOR_DB = 'conveyor.lmdb' } = process.env
const engine = await openEngine(CONVEYOR_DB, { handlers, admin: true })
await engine.processes.put(order)
const operator = await serveOperator(engine, { port: Number(OPERATOR_PORT) })

// POST /order-1 makes an order, PUT /order-1 says that it is paid, GET /order-1 shows it.
const answers = {
  POST: (ref) => engine.create({ conv_id: 1, ref, data: { amount: 120 } }),
  PUT: (ref) => engine.modify({ conv_id: 1, ref, data: { paid: true } }),
  GET: async (ref) => {
    const { node_id, data } = (await engine.task({ conv_id: 1, ref })) ?? {}
    return { node_id, data }
  },
}
const server = createServer(async ({ method, url }, response) => {
  const answer = answers[method]?.(url.slice(1)) ?? { proc: 'no_such_method' }
  const body = await Promise.resolve(answer).catch(({ code }) => ({ proc: code }))
  response.setHeader('content-type', 'application/json').end(`${JSON.stringify(body)}\n`)
})
server.listen(PORT, () => {
  const { port } = server.address()
  console.log(`orders at http://127.0.0.1:${port}, the page by: npx conveyor console link`)
})
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    server.close()
    await operator.drain()
    await engine.close()
    process.exit()
  })
}
