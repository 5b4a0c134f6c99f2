/**
 * A stream of batches over gRPC as calls: each `send` is a batch, and resolves with its answer. A
 * stream ends after so many batches, and the next one begins.
 */
import type { BatchResult, Client, ClientOp } from '../../src/client/api.ts'

interface Sent {
  readonly ops: readonly ClientOp[]
  resolve(result: BatchResult): void
  reject(error: unknown): void
}

const batches_each = 200

export function openBatches(client: Client): {
  send(ops: readonly ClientOp[]): Promise<BatchResult>
  close(): Promise<void>
} {
  const waiting: Sent[] = []
  let wake = (): void => {}
  let is_closed = false

  async function* taken(unanswered: Sent[]): AsyncGenerator<readonly ClientOp[]> {
    for (let n = 0; n < batches_each; n++) {
      while (waiting.length === 0) {
        if (is_closed) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const sent = waiting.shift() as Sent
      unanswered.push(sent)
      yield sent.ops
    }
  }

  async function run(): Promise<void> {
    while (!is_closed || waiting.length > 0) {
      const unanswered: Sent[] = []
      try {
        for await (const result of client.stream(taken(unanswered))) {
          unanswered.shift()?.resolve(result)
        }
      } catch (error) {
        for (const { reject } of unanswered) reject(error)
      }
    }
  }
  const over = run()

  return {
    send(ops) {
      const answered = new Promise<BatchResult>((resolve, reject) => {
        waiting.push({ ops, resolve, reject })
      })
      wake()
      return answered
    },
    close() {
      is_closed = true
      wake()
      return over
    },
  }
}
