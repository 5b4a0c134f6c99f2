/**
 * Child of the proof of vectors: sends hostile requests to an HTTP server, one after another, and
 * prints a line for each whose answer is not the stated one.
 *
 * `node child.js FIRST COUNT`
 */
import { body, type HostileRow, hostile_rows } from './hostile-rows.ts'
import { connectRaw } from './http-raw.ts'
import { codeOf, openHttp, type TestHttp } from './http-server.ts'

const silent_ms_max = 20_000
const [first = 0, count = hostile_rows.length] = process.argv.slice(2).map(Number)
const bugs: unknown[] = []
const server = await openHttp({ onBug: (bug) => bugs.push(bug) })
await server.send(body)
for (let at = first; at < first + count; at++) {
  const row = hostile_rows[at % hostile_rows.length] as HostileRow
  const answered = await answerTo(server, row)
  const afterwards = codeOf(await server.send(body))
  const found = [
    ...(answered === row.code ? [] : [`answered ${answered}, not ${row.code}`]),
    ...(afterwards === 'ok' ? [] : [`a good request afterwards: ${afterwards}`]),
    ...bugs.splice(0).map((bug) => `a bug: ${(bug as Error)?.stack ?? bug}`),
  ]
  const { area, says } = row
  if (found.length > 0)
    console.log(JSON.stringify({ at, says: `${area}, ${says}: ${found.join('; ')}` }))
}
await server.close()

async function answerTo({ port }: TestHttp, row: HostileRow): Promise<string> {
  const client = await connectRaw(port)
  client.send(row.bytes(server))
  let late: NodeJS.Timeout | undefined
  const silence = new Promise<string>((resolve) => {
    late = setTimeout(() => resolve('nothing'), silent_ms_max)
  })
  const answer = client.answer().then(codeOf, () => 'closed')
  const code = await Promise.race([answer, silence])
  clearTimeout(late)
  client.socket.destroy()
  return code
}
