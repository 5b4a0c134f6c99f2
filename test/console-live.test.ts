/**
 * Live views of the operator's page: what is told when, that nothing is told twice or collected for
 * a reader who does not read, how many there may be, and what ends them.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  beat_every_ms,
  frame_every_ms,
  look_every_ms,
  serveStream,
  session_streams_max,
} from '../src/console/server/live.ts'
import type { Frame } from '../src/console/server/messages.ts'
import { nextTurn } from '../src/core/clock.ts'
import {
  type ConsoleHarness,
  type Live,
  openHarness,
  type SignedIn,
} from './support/console-harness.ts'
import { conv_id } from './support/http-server.ts'

let harness: ConsoleHarness
let me: SignedIn
before(async () => {
  harness = await openHarness({ limits: { readers_max: 6 } })
})
after(() => harness.close())
beforeEach(async () => {
  me = await harness.as('operate')
})

/** Lets what has begun go on until the stream waits for its next look. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await nextTurn()
}

async function pass(ms: number): Promise<void> {
  for (let left_ms = ms; left_ms > 0; left_ms -= frame_every_ms) {
    harness.clock.advance(Math.min(left_ms, frame_every_ms))
    await settled()
  }
}

/** Closes a view, of which the server knows then. */
async function leave(...views: Live[]): Promise<void> {
  for (const { response } of views) response.destroy()
  while ((await openConnections()) > 0) await nextTurn()
}

function openConnections(): Promise<number> {
  return new Promise((resolve) => {
    harness.server.getConnections((_, count) => resolve(count))
  })
}

describe('a view', () => {
  test('is told whole first, then as it changes, and where nothing does that it lives', async () => {
    const { obj_id } = await harness.engine.create({ conv_id, ref: 'live', data: {} })
    const view = await harness.live(`view=task&obj_id=${obj_id}`, me)
    const first = (await view.next())?.data as { task: { status: string; conv_id: string } }
    assert.deepEqual([first.task.conv_id, first.task.status], [conv_id, 'delayed'])
    await pass(beat_every_ms)
    assert.equal((await view.next())?.event, 'beat')
    await harness.call('cancel', { conv_id, obj_id }, me)
    await pass(frame_every_ms)
    const then = (await view.next())?.data as typeof first
    assert.equal(then.task.status, 'canceled')
    await leave(view)
  })

  test('an overview has what has changed alone, four times a second at most', async () => {
    const view = await harness.live('view=overview', me)
    const first = (await view.next())?.data as { overview: { processes: object[] } }
    assert.equal(first.overview.processes.length, 1)
    const given: unknown[] = []
    const reading = (async () => {
      for (let one = await view.next(); one !== undefined; one = await view.next()) given.push(one)
    })()
    for (let step = 0; step < 8; step++) {
      for (let many = 0; many < 5; many++) await harness.engine.create({ conv_id, data: { many } })
      await pass(frame_every_ms)
    }
    await leave(view)
    await reading
    assert.ok(given.length <= 8, String(given.length))
    assert.ok(given.length >= 4, String(given.length))
  })

  // biome-ignore format: a table
  const rows: readonly (readonly [query: string, code: string])[] = [
    ['view=process&conv_id=77',  'conv_not_found'],
    ['view=process',             'bad_request'],
    [`view=process&conv_id=${'7'.repeat(200)}`, 'bad_request'],
    ['view=task&obj_id=x',       'bad_request'],
    [`view=task&obj_id=${'0'.repeat(24)}`, 'not_found'],
    ['view=tasks',               'bad_request'],
    ['',                         'bad_request'],
  ]
  for (const [query, code] of rows) {
    test(`of ${query.slice(0, 40)}: ${code}`, async () => {
      assert.equal(await harness.codeOf(`/console/live?${query}`, { as: me }), code)
    })
  }

  test('of a process that is removed ends, and is refused then', async () => {
    await harness.engine.processes.put({ obj_type: 1, scheme: { nodes: [] } }, { conv_id: '88' })
    const view = await harness.live('view=process&conv_id=88', me)
    await view.next()
    await harness.engine.processes.remove('88')
    await pass(look_every_ms)
    assert.equal(await view.next(), undefined)
    const query = 'view=process&conv_id=88'
    assert.equal(await harness.codeOf(`/console/live?${query}`, { as: me }), 'conv_not_found')
  })
})

describe('it ends', () => {
  async function endOf(view: Live): Promise<void> {
    let last = await view.next()
    while (last !== undefined) last = await view.next()
  }

  type End = () => Promise<unknown>
  const rows: readonly (readonly [what: string, end: End])[] = [
    ['with a sign-out', () => harness.call('sign_out', {}, me)],
    ['when its session is over', async () => harness.clock.advance(12 * 3_600_000)],
  ]
  for (const [what, end] of rows) {
    test(what, async () => {
      const view = await harness.live('view=overview', me)
      await view.next()
      await end()
      await endOf(view)
      assert.equal(await harness.codeOf('/console/live?view=overview', { as: me }), 'bad_signature')
    })
  }

  test('when the user loses the right', async () => {
    const { id: user, secret } = await harness.engine.users.add()
    await harness.engine.users.console(user, 'look')
    const view = await harness.live('view=overview', await harness.signIn({ user, secret }))
    await view.next()
    await harness.engine.users.console(user, undefined)
    await pass(frame_every_ms)
    assert.equal(await view.next(), undefined)
  })

  test('when the embedder names somebody else', async () => {
    let name = 'ann'
    await using own = await openHarness({ authorize: () => ({ name, right: 'look' }) })
    const { headers } = await own.ask('/console/session')
    const [cookie = ''] = headers['set-cookie']?.[0]?.split(';') ?? []
    const view = await own.live('view=overview', { ...me, cookie })
    await view.next()
    name = 'ben'
    let is_over = false
    const ended = endOf(view).then(() => {
      is_over = true
    })
    for (let seconds = 0; seconds < 20 && !is_over; seconds++) {
      own.clock.advance(look_every_ms)
      await settled()
    }
    await ended
  })

  test('with the page, which serves no more then', async () => {
    await using own = await openHarness()
    const as = await own.as('look')
    const views = [await own.live('view=overview', as), await own.live('view=overview', as)]
    for (const view of views) await view.next()
    own.console.close()
    for (const view of views) assert.equal(await view.next(), undefined)
    assert.equal(await own.codeOf('/console/session', { as }), 'shutting_down')
  })

  test('with the engine', async () => {
    await using own = await openHarness()
    const view = await own.live('view=overview', await own.as('look'))
    await view.next()
    await own.engine.close()
    own.clock.advance(look_every_ms)
    assert.equal(await view.next(), undefined)
  })
})

describe('so many', () => {
  const code = (as: SignedIn) => harness.codeOf('/console/live?view=overview', { as })

  test('of one session, because a browser has no more connections', async () => {
    const views = []
    for (let at = 0; at < session_streams_max; at++)
      views.push(await harness.live('view=overview', me))
    assert.equal(await code(me), 'overloaded')
    const other = await harness.live('view=overview', await harness.as('look'))
    await leave(...views, other)
    await leave(await harness.live('view=overview', me))
  })

  test('of all, and one that ends makes room', async () => {
    const views = []
    for (let at = 0; at < 6; at++)
      views.push(await harness.live('view=overview', await harness.as('look')))
    assert.equal(await code(me), 'overloaded')
    await leave(...views)
    await leave(await harness.live('view=overview', me))
  })
})

describe('a reader who does not read', () => {
  test('holds few frames, and is ended', async () => {
    const big = 'x'.repeat(1_000_000)
    let made = 0
    const frames = {
      mark: () => made,
      next: async () => ({ view: 'overview', overview: { made: ++made, big } }) as unknown as Frame,
      close() {},
    }
    const server = createServer((request, response) => {
      void serveStream({
        ...{ request, response, frames, clock: harness.clock, limits: harness.engine.limits },
        ...{ readers: new Set(), goesOn: () => true, ended: new AbortController().signal },
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.pause()
    socket.on('error', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    while (made === 0) await nextTurn()
    await settled()
    // What the system holds for a connection takes a few.
    await pass(5_000)
    const held = made
    assert.ok(held < 20, `${held} frames of a megabyte`)
    await pass(harness.engine.limits.reader_stalled_ms_max)
    assert.equal(made, held)
    socket.resume()
    if (!socket.closed) await once(socket, 'close')
    server.close()
  })
})
