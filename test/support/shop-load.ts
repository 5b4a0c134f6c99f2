/**
 * Customers of the shop: each places an order, waits for its result, and places the next. They send
 * a request again until it is answered, whatever happens to the shop meanwhile.
 */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** An order as the shop answered its customer. */
export interface Sale {
  readonly obj_id: string
  /** Once it has ended. */
  result?: { readonly status: string; readonly node_id: string }
}

export interface Load {
  /** By ref: the orders that the shop has taken. */
  readonly sales: ReadonlyMap<string, Sale>
  /** No customer orders again; resolves once each has the result of the last order. */
  end(): Promise<void>
  /** Rejects when a customer is answered wrongly. */
  readonly ended: Promise<unknown>
}

const customers = 20
const again_ms = 100

/** Once `signal` is aborted, no customer tries again. */
export function startLoad(url: string, signal: AbortSignal): Load {
  const sales = new Map<string, Sale>()
  let is_ending = false

  async function ask(path: string, given?: object): Promise<unknown> {
    const headers = { 'content-type': 'application/json' }
    const post = { method: 'POST', headers, body: JSON.stringify(given) }
    for (;;) {
      signal.throwIfAborted()
      const answer = await fetch(url + path, given && post).catch(() => undefined)
      const body = (await answer?.json().catch(() => undefined)) as unknown
      if (answer !== undefined && body !== undefined && answer.status < 500) {
        assert.ok(answer.ok, `${path}: ${answer.status} ${JSON.stringify(body)}`)
        return body
      }
      await sleep(again_ms)
    }
  }

  async function buy(ref: string, n: number): Promise<void> {
    const given = { ref, amount: 1 + n, card: n % 8 === 0 ? 'declined' : 'good' }
    // Some press the button twice.
    const placed = await Promise.all(
      Array.from({ length: n % 5 === 0 ? 2 : 1 }, () => ask('/orders', given)),
    )
    const [{ obj_id } = { obj_id: '' }, ...others] = placed as { obj_id: string }[]
    for (const other of others) assert.equal(other.obj_id, obj_id, `${ref} is two orders`)
    const sale: Sale = { obj_id }
    sales.set(ref, sale)
    for (;;) {
      const result = (await ask(`/orders/${ref}`)) as { status: string; node_id: string }
      if (result.status !== 'failed') {
        sale.result = result
        return
      }
      await sleep(again_ms)
    }
  }

  async function customer(name: number): Promise<void> {
    for (let n = name; !is_ending; n++) await buy(`${name}-${n}`, n)
  }

  const ended = Promise.all(Array.from({ length: customers }, (_, name) => customer(name)))
  return {
    sales,
    async end() {
      is_ending = true
      await ended
    },
    ended,
  }
}
