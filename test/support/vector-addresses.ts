/**
 * What a vector posts to an address without a signature (wire 1.11): over a real socket to an HTTP
 * server of its own, because no other transport has addresses.
 */
import assert from 'node:assert/strict'
import { wholeFaults } from '../../src/core/faults.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { serveHttp } from '../../src/http.ts'

/** The answer to the `body` of a step, posted to its address or to a guess at it. */
export async function postToAddress(engine: Engine, step: JsonObject): Promise<string> {
  const { body, version = 1, form = 'json', hash } = step
  const names = step.post as JsonValue[]
  const server = await serveHttp(engine, { port: 0 })
  try {
    const path = `/${names.join('/')}/${hash ?? (await hashOf(engine, names))}`
    const url = `${server.url}/api/${version}/${form}${path}`
    const answer = await fetch(url, { method: 'POST', body: String(body) })
    const text = await answer.text()
    const code = (JSON.parse(text) as JsonObject).request_proc as keyof typeof wholeFaults
    assert.equal(answer.status, wholeFaults[code]?.http ?? 200)
    return text
  } finally {
    await server.drain()
  }
}

async function hashOf(engine: Engine, [kind, conv_id, node_id]: JsonValue[]): Promise<string> {
  const { address, callbacks } = await engine.processes.webhook(conv_id as number)
  const callback = callbacks.find((one) => one.node_id === node_id)?.address
  return String(kind === 'public' ? address : callback).slice(-40)
}
