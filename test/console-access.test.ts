/**
 * Who may in to the operator's page beside by a link: users by their secrets, and whoever the
 * embedder names; refusals that slow down; what the log tells; and bounds of what is sent.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { input_bytes_max } from '../src/console/server/calls/call.ts'
import { sessions_max } from '../src/console/server/sessions.ts'
import { tries_max, try_again_ms } from '../src/console/server/sign-in.ts'
import { type Authorized, createConsole, type Right } from '../src/console.ts'
import type { ConsoleRight } from '../src/engine/api/user-api.ts'
import {
  type Asking,
  type ConsoleHarness,
  openHarness,
  type SignedIn,
} from './support/console-harness.ts'
import { exchange } from './support/http-raw.ts'
import { conv_id } from './support/http-server.ts'
import { pick } from './support/pick.ts'

let harness: ConsoleHarness
before(async () => {
  harness = await openHarness()
})
after(() => harness.close())
beforeEach(() => {
  harness.clock.advance(tries_max * try_again_ms)
  harness.told.length = 0
})

const post = (body: unknown, more: Asking = {}): Asking => ({ method: 'POST', body, ...more })
const signInCode = (body: unknown): Promise<string> =>
  harness.codeOf('/console/api/sign_in', post(body))

async function newUser(right?: ConsoleRight): Promise<{ user: string; secret: string }> {
  const { id: user, secret } = await harness.engine.users.add()
  if (right !== undefined) await harness.engine.users.console(user, right)
  return { user, secret }
}

describe('users', () => {
  test('one with a right signs in by a secret, under its id', async () => {
    const { session } = await harness.signIn(await newUser('operate'))
    const { id } =
      (await harness.engine.users.list()).find(({ console }) => console === 'operate') ?? {}
    assert.deepEqual([session.name, session.right], [id, 'operate'])
    const { name: by, right } = session
    const line = { event: 'console_session', what: 'begun', by, right, of: 'user' }
    assert.deepEqual(harness.told, [{ ...line, address: '127.0.0.1' }])
  })

  test('what is no id is not told: a secret may have been typed there', async () => {
    const { user, secret } = await newUser('look')
    for (const typed of [secret, `${user} ${secret}`, ` ${user}`]) {
      assert.equal(await signInCode({ user: typed, secret: user }), 'bad_signature')
    }
    assert.deepEqual(
      pick(harness.told, 'event', 'user'),
      Array(3).fill(['request_refused', undefined]),
    )
  })

  test('one who signs in again and again ends no session of others', async () => {
    const made = await newUser('look')
    const others = [await harness.as('administer'), await harness.signIn(await newUser('operate'))]
    const own = await harness.signIn(made)
    for (let at = 0; at <= sessions_max; at++) await harness.signIn(made)
    for (const as of others) assert.equal(await harness.codeOf('/console/session', { as }), 'ok')
    assert.equal(await harness.codeOf('/console/session', { as: own }), 'bad_signature')
  })

  test('an unknown one gets the answer of a wrong secret', async () => {
    const { user, secret } = await newUser('look')
    const answers = []
    for (const body of [
      { user, secret: `${secret}x` },
      { user, secret: '' },
      { user: '999', secret },
      { user: '999', secret: '' },
      { user: 'x\n"', secret },
      { user: '', secret },
      { user: '__proto__', secret: '' },
    ]) {
      const { status, text } = await harness.ask('/console/api/sign_in', post(body))
      answers.push(`${status} ${text}`)
    }
    assert.equal(new Set(answers).size, 1, answers.join(''))
    assert.match(answers[0] as string, /^401 \{"error":"bad_signature"/)
    const refusals = harness.told.map(({ event, code, server, user, address }) => ({
      ...{ event, code, server, user, address },
    }))
    const line = { event: 'request_refused', code: 'bad_signature', server: 'operator' }
    assert.deepEqual(refusals[2], { ...line, user: '999', address: '127.0.0.1' })
  })

  test('one without a right is told so, once the secret is right', async () => {
    const { user, secret } = await newUser()
    assert.equal(await signInCode({ user, secret }), 'access_denied')
    assert.equal(await signInCode({ user, secret: 'x' }), 'bad_signature')
  })

  test('a new user has none, and the list shows who has', async () => {
    const { user } = await newUser('look')
    const shown = async () => (await harness.engine.users.list()).find(({ id }) => id === user)
    assert.equal((await shown())?.console, 'look')
    await harness.engine.users.sign(user, 'hmac')
    assert.deepEqual([(await shown())?.console, (await shown())?.sign], ['look', 'hmac'])
    await harness.engine.users.console(user, undefined)
    assert.deepEqual([(await shown())?.console, (await shown())?.sign], [undefined, 'hmac'])
    await assert.rejects(harness.engine.users.console(user, 'all' as 'look'), {
      code: 'not_possible',
    })
    await assert.rejects(harness.engine.users.console('77', 'look'), { code: 'user_not_found' })
  })

  type Change = (id: string) => Promise<unknown>
  const changes: readonly (readonly [what: string, change: Change, right: Right | undefined])[] = [
    ['gets a lesser right', (id) => harness.engine.users.console(id, 'look'), 'look'],
    ['gets a higher right', (id) => harness.engine.users.console(id, 'administer'), 'administer'],
    ['loses the right', (id) => harness.engine.users.console(id, undefined), undefined],
    ['is removed', (id) => harness.engine.users.remove(id), undefined],
    ['gets a new secret', (id) => harness.engine.users.rotate(id), undefined],
    ['gets one more', (id) => harness.engine.users.rotate(id, { grace_ms: 5_000 }), 'operate'],
  ]
  for (const [what, change, right] of changes) {
    test(`the session of one who ${what} may ${right ?? 'nothing'} from then on`, async () => {
      const made = await newUser('operate')
      const as = await harness.signIn(made)
      await change(made.user)
      const { status, text } = await harness.ask('/console/session', { as })
      assert.deepEqual([status, JSON.parse(text).right], right ? [200, right] : [401, undefined])
    })
  }
})

describe('refused sign-ins', () => {
  const wait = async (): Promise<string | undefined> => {
    const { status, headers } = await harness.ask(
      '/console/api/sign_in',
      post({ user: '999', secret: 'x' }),
    )
    return status === 429 ? headers['retry-after'] : undefined
  }
  const refuseMany = async (): Promise<void> => {
    for (let at = 0; at < tries_max; at++) assert.equal(await wait(), undefined, `try ${at}`)
  }

  test('slow down, and each is tried again soon', async () => {
    await refuseMany()
    assert.equal(await wait(), '6')
    harness.clock.advance(try_again_ms - 1)
    assert.equal(await wait(), '1')
    harness.clock.advance(1)
    assert.equal(await wait(), undefined)
    assert.equal(await wait(), '6')
    const { rate_limited = 0 } = harness.engine.statistics().requests.operator ?? {}
    assert.ok(rate_limited >= 3)
  })

  test('let nobody in by the right secret meanwhile, and no longer', async () => {
    const made = await newUser('look')
    await refuseMany()
    assert.equal(await signInCode(made), 'rate_limited')
    harness.clock.advance(try_again_ms)
    assert.equal(await signInCode(made), 'ok')
  })

  test('keep nobody out who has a link, and not for long who has a secret', async () => {
    const made = await newUser('look')
    for (let at = 0; at < 5 * tries_max; at++) await signInCode({ link: 'x' })
    assert.equal(await signInCode(made), 'rate_limited')
    assert.equal((await harness.as('look')).session.right, 'look')
    harness.clock.advance(try_again_ms)
    assert.equal(await signInCode(made), 'ok')
  })
})

describe('an embedder who says who it is', () => {
  let who: Authorized | undefined
  let own: ConsoleHarness
  before(async () => {
    own = await openHarness({
      ...{ base: '/staff/console', right_max: 'operate' },
      authorize: async () => who,
    })
  })
  after(() => own.close())
  beforeEach(() => {
    who = { name: 'ann', right: 'administer' }
  })

  async function visit(): Promise<SignedIn> {
    const { headers, text } = await own.ask('/staff/console/session')
    const [cookie = ''] = headers['set-cookie']?.[0]?.split(';') ?? []
    const session = JSON.parse(text)
    return { cookie, session, token: session.token }
  }
  const code = (as: SignedIn) => own.codeOf('/staff/console/session', { as })

  test('lets in whoever it names, no further than it may be', async () => {
    const as = await visit()
    assert.deepEqual([as.session.name, as.session.right], ['ann', 'operate'])
    assert.equal((await own.call('bulk_jobs', {}, as)).status, 200)
    assert.equal((await own.call('pause', { conv_id }, as)).status, 403)
    who = { name: 'ann', right: 'look' }
    assert.equal((await own.call('cancel', {}, as)).status, 403)
  })

  test('lets in nobody else', async () => {
    who = undefined
    assert.equal(await own.codeOf('/staff/console/session'), 'bad_signature')
    assert.equal((await own.ask('/staff/console/')).status, 200)
  })

  for (const then of [undefined, { name: 'ben', right: 'look' as const }]) {
    test(`ends the session of one who is ${then?.name ?? 'nobody'} then`, async () => {
      const as = await visit()
      who = then
      assert.equal((await own.call('tasks', {}, as)).status, 401)
      who = { name: 'ann', right: 'look' }
      assert.equal((await own.call('tasks', {}, as)).status, 401)
    })
  }

  test('has no links, and no sign-in by secrets', async () => {
    const { id: user, secret } = await own.engine.users.add()
    await own.engine.users.console(user, 'look')
    const sent = post({ user, secret })
    assert.equal(await own.codeOf('/staff/console/api/sign_in', sent), 'not_possible')
    assert.throws(() => own.console.link(), { code: 'not_possible' })
  })

  test('that throws, or says what the log cannot tell, is a bug, and nobody is in', async () => {
    const said = [{ right: 'look' }, { name: '', right: 'look' }, { name: 'x', right: 'toString' }]
    const bugs: unknown[] = []
    const authorize = (): Authorized => {
      if (bugs.length < said.length) return said[bugs.length] as Authorized
      throw new Error('no table')
    }
    await using broken = await openHarness({ authorize, onBug: (bug) => void bugs.push(bug) })
    for (let count = 1; count <= said.length + 1; count++) {
      const { status, text, headers } = await broken.ask('/console/session')
      assert.deepEqual([status, bugs.length, headers['set-cookie']], [500, count, undefined])
      assert.doesNotMatch(text, /no table/)
    }
  })

  test('the page says its base, and is at no other', async () => {
    assert.match((await own.ask('/staff/console/')).text, /content="\/staff\/console"/)
    assert.match((await own.ask('/console/')).text, /^not the page's/)
    assert.equal(await code(await visit()), 'ok')
  })

  for (const base of [
    '',
    '/',
    'console',
    '/x/',
    '/"x',
    '/a b',
    '/../..//',
    '/..',
    '/a/../b',
    '/.',
  ]) {
    test(`not under ${JSON.stringify(base)}`, () =>
      assert.throws(() => createConsole(harness.engine, { base }), RangeError))
  }
})

describe('what the log tells of acts', () => {
  const acted = () => harness.told.filter(({ event }) => event === 'console_acted')

  test('one line for each, done or refused, with who did it and no data', async () => {
    const secret_data = JSON.stringify({ amount: 'data of a task' })
    const { obj_id } = await harness.engine.create({ conv_id, ref: 'r', data: { n: 1 } })
    const [operator, looker] = [
      await harness.signIn(await newUser('operate')),
      await harness.as('look'),
    ]
    harness.told.length = 0
    const named = { conv_id, obj_id }
    const none = { conv_id, obj_id: '0'.repeat(24) }
    await harness.call('modify', { ...named, data_text: secret_data }, operator)
    await harness.call('cancel', none, operator)
    await harness.call('cancel', { conv_id }, operator)
    await harness.call('cancel', named, looker)
    await harness.call('pause', { conv_id }, operator)
    await harness.call('tasks', {}, operator)
    const by = operator.session.name
    const lines = acted().map(({ event: _, ...fields }) => fields)
    assert.deepEqual(lines, [
      { act: 'modify', by, code: 'ok', tasks: 1, ...named },
      { act: 'cancel', by, code: 'not_found_task', tasks: 0, ...none },
      { act: 'cancel', by, code: 'bad_request', conv_id },
      { act: 'cancel', by: 'link', code: 'access_denied' },
      { act: 'pause', by, code: 'access_denied' },
    ])
    assert.equal(harness.told.length, lines.length)
    assert.doesNotMatch(JSON.stringify(harness.told), /data of a task/)
  })

  test('a session that only looks, whoever asks', async () => {
    await using only = await openHarness({ right_max: 'look' })
    const { id: user, secret } = await only.engine.users.add()
    await only.engine.users.console(user, 'administer')
    for (const as of [await only.as('administer'), await only.signIn({ user, secret })]) {
      assert.equal(as.session.right, 'look')
      assert.equal((await only.call('resume', { conv_id }, as)).status, 403)
      assert.equal((await only.call('tasks', {}, as)).status, 200)
    }
  })
})

describe('bounds', () => {
  let me: SignedIn
  beforeEach(async () => {
    me = await harness.as('administer')
  })

  const too_long = JSON.stringify({ x: 'x'.repeat(2 * input_bytes_max) })
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, name: string, body: string, headers: Record<string, string>, status: number])[] = [
    ['a body over the bound',       'tasks',   too_long,      {}, 413],
    ['one in chunks',               'tasks',   too_long,      { 'Transfer-Encoding': 'chunked' }, 413],
    ['a sign-in over its own',      'sign_in', `"${'x'.repeat(5_000)}"`, {}, 413],
    ['a body that is no JSON',      'tasks',   '{',           {}, 400],
    ['deep nesting',                'tasks',   '['.repeat(200_000), {}, 400],
    ['no body',                     'tasks',   '',            {}, 400],
    ['a form',                      'tasks',   'a=b',         { 'Content-Type': 'application/x-www-form-urlencoded' }, 415],
    ['JSON that says it is text',   'tasks',   '{}',          { 'Content-Type': 'text/plain' }, 415],
  ]
  for (const [what, name, body, headers, status] of rows) {
    test(`${what}: ${status}`, async () => {
      const sent = { method: 'POST', body, as: me, headers }
      const answer = await harness.ask(`/console/api/${name}`, sent)
      assert.equal(answer.status, status, answer.text)
      assert.equal((await harness.call('bulk_jobs', {}, me)).status, 200)
    })
  }

  test('a body that is announced as too long is refused unread', async () => {
    const head = [
      ...['POST /console/api/tasks HTTP/1.1', 'Host: x', 'Content-Type: application/json'],
      ...[`Cookie: ${me.cookie}`, `X-Conveyor-Token: ${me.token}`, 'Content-Length: 99999999'],
    ]
    const { status, headers } = await exchange(harness.port, `${head.join('\r\n')}\r\n\r\n`)
    assert.deepEqual([status, headers.connection], [413, 'close'])
  })

  const ends: readonly (readonly [what: string, end: (as: SignedIn) => Promise<unknown>])[] = [
    ['is signed out', (as) => harness.call('sign_out', {}, as)],
    ['loses the right', ({ session }) => harness.engine.users.console(session.name, 'look')],
    ['is removed', ({ session }) => harness.engine.users.remove(session.name)],
  ]
  for (const [what, end] of ends) {
    test(`one who ${what} before the end of a body does nothing by it`, async () => {
      const as = await harness.signIn(await newUser('administer'))
      const body = JSON.stringify({ conv_id })
      const socket = connect(harness.port, '127.0.0.1')
      const head = [
        ...['POST /console/api/pause HTTP/1.1', 'Host: x', 'Content-Type: application/json'],
        ...[`Cookie: ${as.cookie}`, `X-Conveyor-Token: ${as.token}`, 'Connection: close'],
        ...[`Content-Length: ${body.length}`, 'Expect: 100-continue'],
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      // It has begun to read the body.
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 100 /)
      await end(as)
      socket.write(body)
      assert.match(String(await once(socket, 'data')), /^HTTP\/1\.1 403 .*"access_denied"/s)
      assert.equal((await harness.engine.processes.show(conv_id)).status, 'active')
    })
  }

  test('of nobody a body is read', async () => {
    const head = [
      ...['POST /console/api/import HTTP/1.1', 'Host: x', 'Content-Type: application/json'],
      'Content-Length: 30000000',
    ]
    const { status } = await exchange(harness.port, `${head.join('\r\n')}\r\n\r\n`)
    assert.equal(status, 401)
  })

  test('behind a body parser it says where it is to be mounted', async () => {
    const own = createConsole(harness.engine)
    const server = createServer(async (request, response) => {
      for await (const _ of request);
      own.handle(request, response)
    }).listen(0)
    const { port } = server.address() as AddressInfo
    const headers = { 'Content-Type': 'application/json' }
    const url = `http://127.0.0.1:${port}/console/api/sign_in`
    const answer = await fetch(url, { method: 'POST', headers, body: '{}' })
    assert.match(await answer.text(), /"internal_error","description":"a body parser .* in front/)
    own.close()
    server.closeAllConnections()
    server.close()
  })

  test('a body that breaks off is no bug', async () => {
    const socket = connect(harness.port, '127.0.0.1')
    const head = [
      ...['POST /console/api/tasks HTTP/1.1', 'Host: x', 'Content-Type: application/json'],
      ...[`Cookie: ${me.cookie}`, `X-Conveyor-Token: ${me.token}`, 'Content-Length: 100'],
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n{"x":`, () => socket.resetAndDestroy())
    while (!harness.told.some(({ event }) => event === 'request_refused')) await harness.as('look')
    assert.ok(!harness.told.some(({ event }) => event === 'bug'))
  })
})
