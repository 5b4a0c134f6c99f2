/**
 * The server of the operator's page: what it answers to whom, sessions and links, what each right
 * may, bounds, and what stands in the log. What the calls do is console-calls.test.ts, live views
 * are console-live.test.ts, and the operator's listener console-listener.test.ts.
 */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { calls, type TableCall } from '../src/console/server/calls.ts'
import { type Right, rights } from '../src/console/server/messages.ts'
import {
  idle_ms_max,
  link_ms_max,
  links_max,
  session_ms_max,
  sessions_max,
} from '../src/console/server/sessions.ts'
import { tries_max, try_again_ms } from '../src/console/server/sign-in.ts'
import {
  type Asking,
  type ConsoleHarness,
  openHarness,
  type SignedIn,
} from './support/console-harness.ts'

let harness: ConsoleHarness
let me: SignedIn
before(async () => {
  harness = await openHarness()
})
after(() => harness.close())
beforeEach(async () => {
  // Whoever was refused in an earlier test is forgotten.
  harness.clock.advance(tries_max * try_again_ms)
  me = await harness.as('administer')
  harness.told.length = 0
})

const post = (body: unknown, more: Asking = {}): Asking => ({ method: 'POST', body, ...more })
const json = { 'Content-Type': 'application/json' }

describe('what is at which path', () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [method: string, path: string, status: number, has: RegExp])[] = [
    ['GET',  '/console',             302, /^$/],
    ['GET',  '/console/',            200, /<meta name="base" content="\/console">/],
    ['GET',  '/console/tasks',       200, /<script type="module" src="\/console\/page\.js">/],
    ['GET',  '/console/process/1/..', 200, /<link rel="stylesheet" href="\/console\/page\.css">/],
    ['HEAD', '/console/task/x',      200, /^$/],
    ['GET',  '/console/page.js',     200, /preact|signal|createElement/i],
    ['GET',  '/console/page.css',    200, /\{/],
    ['GET',  '/console/icon.svg',    200, /<svg/],
    ['GET',  '/console/page.js.map', 200, /<!doctype html>/],
    ['GET',  '/console/session',     401, /"error":"bad_signature"/],
    ['GET',  '/console/live?view=overview', 401, /"error":"bad_signature"/],
    ['GET',  '/console/export?conv_id=1234', 401, /"error":"bad_signature"/],
    ['GET',  '/console/csv?id=1',    401, /"error":"bad_signature"/],
    ['POST', '/console/csv',         401, /"error":"bad_signature"/],
    ['POST', '/console/api/tasks',   401, /"error":"bad_signature"/],
    ['POST', '/console/api/nothing', 404, /"error":"not_found"/],
    ['POST', '/console/api/__proto__', 404, /"error":"not_found"/],
    ['POST', '/console/api/tasks/',  404, /"error":"not_found"/],
    ['GET',  '/console/api/tasks',   405, /"error":"method_not_allowed"/],
    ['POST', '/console/',            405, /"error":"method_not_allowed"/],
    ['POST', '/console/session',     405, /"error":"method_not_allowed"/],
    ['PUT',  '/console/page.js',     405, /"error":"method_not_allowed"/],
    ['GET',  '/',                    200, /^not the page's: \/$/],
    ['GET',  '/consoles',            200, /^not the page's: \/consoles$/],
    ['GET',  '/x/console/',          200, /^not the page's/],
    ['GET',  '//console/',           200, /^not the page's/],
    ['GET',  '/Console/',            200, /^not the page's/],
    ['GET',  '/%63onsole/',          200, /^not the page's/],
  ]
  for (const [method, path, status, has] of rows) {
    test(`${method} ${path}: ${status}`, async () => {
      const { status: given, text, headers } = await harness.ask(path, { method })
      assert.equal(given, status, text)
      assert.match(text, has)
      if (status === 302) assert.equal(headers.location, '/console/')
      if (status === 405) assert.match(String(headers.allow), method === 'GET' ? /^POST$/ : /^GET/)
    })
  }
})

describe('headers', () => {
  const csp =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
  const rows = [
    ...['/console', '/console/', '/console/page.js', '/console/session', '/console/api/tasks'],
    '/console/export?conv_id=1234',
  ]
  for (const path of rows) {
    for (const as of ['nobody', 'somebody']) {
      test(`of ${path} to ${as}`, async () => {
        const { headers } = await harness.ask(path, as === 'nobody' ? {} : { as: me })
        assert.equal(headers['content-security-policy'], csp)
        assert.equal(headers['x-content-type-options'], 'nosniff')
        assert.equal(headers['referrer-policy'], 'no-referrer')
        assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
        assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
        assert.equal(headers['access-control-allow-origin'], undefined)
        const kept = path.endsWith('.js') ? 'no-cache' : 'no-store'
        assert.equal(headers['cache-control'], kept)
      })
    }
  }

  test('a built file is sent again only where it has changed, and zipped to who takes that', async () => {
    const first = await harness.ask('/console/page.js', {
      headers: { 'Accept-Encoding': 'br, gzip' },
    })
    assert.equal(first.headers['content-encoding'], 'gzip')
    const { etag = '' } = first.headers
    const again = await harness.ask('/console/page.js', { headers: { 'If-None-Match': etag } })
    assert.deepEqual([again.status, again.text], [304, ''])
    const other = await harness.ask('/console/page.js', { headers: { 'If-None-Match': '"other"' } })
    assert.deepEqual([other.status, other.headers['content-encoding']], [200, undefined])
  })
})

describe('requests of other pages', () => {
  const own = { Origin: 'http://me:1', Host: 'me:1' }
  const visit = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }
  const cross = { 'Sec-Fetch-Site': 'cross-site' }
  // biome-ignore format: a table
  const rows: readonly (readonly [path: string, headers: Record<string, string>, ok: boolean])[] = [
    ['/console/session',   {},                                             true],
    ['/console/session',   own,                                            true],
    ['/console/session',   { ...own, Host: 'ME:1' },                       true],
    ['/console/session',   { Origin: 'https://me', Host: 'me' },           true],
    ['/console/session',   { Origin: 'http://me:2', Host: 'me:1' },        false],
    ['/console/session',   { Origin: 'http://evil.example', Host: 'me' },  false],
    ['/console/session',   { Origin: 'null' },                             false],
    ['/console/session',   { Origin: 'x' },                                false],
    ['/console/session',   { 'Sec-Fetch-Site': 'same-origin' },            true],
    ['/console/session',   { 'Sec-Fetch-Site': 'none' },                   true],
    ['/console/session',   { 'Sec-Fetch-Site': 'same-site' },              false],
    ['/console/session',   cross,                                          false],
    ['/console/session',   { ...cross, ...visit },                         false],
    ['/console/live?view=x', { ...cross, ...visit },                       false],
    ['/console/export?conv_id=1234', { ...cross, ...visit },               false],
    ['/console/csv?id=1',  { ...cross, ...visit },                         false],
    ['/console/page.js',   cross,                                          false],
    ['/console/',          { ...cross, ...visit },                         true],
    ['/console/task/1',    { ...cross, ...visit },                         true],
    ['/console/',          { ...cross, ...visit, 'Sec-Fetch-Dest': 'iframe' }, false],
    ['/console/',          cross,                                          false],
  ]
  for (const [path, headers, ok] of rows) {
    test(`${path} with ${JSON.stringify(headers)}: ${ok ? 'served' : 'refused'}`, async () => {
      const { status, text } = await harness.ask(path, { headers, as: me })
      assert.equal(status, ok ? 200 : 403, text)
      if (ok) return
      assert.match(text, /"bad_request","description":"requests of web pages of another origin/)
      const line = { event: 'request_refused', server: 'operator', code: 'bad_request' }
      assert.deepEqual(harness.told, [{ ...line, address: '127.0.0.1', user: undefined }])
    })
  }

  for (const headers of [{ Origin: 'http://evil.example' }, cross]) {
    test(`no sign-in with ${JSON.stringify(headers)}`, async () => {
      const link = harness.console.link().split('#link=')[1]
      const sent = post({ link }, { headers: { ...headers, ...json } })
      assert.equal(await harness.codeOf('/console/api/sign_in', sent), 'bad_request')
      assert.equal(await harness.codeOf('/console/api/sign_in', post({ link })), 'ok')
    })
  }
})

describe('links', () => {
  const tokenOf = (link: string): string => link.split('#link=')[1] as string

  test('one signs in once, and its token is in no path', async () => {
    const link = harness.console.link('operate')
    assert.match(link, /^\/console\/#link=[\w-]{43}$/)
    const { session } = await harness.signIn({ link: tokenOf(link) })
    assert.deepEqual([session.name, session.right], ['link', 'operate'])
    const again = await harness.ask('/console/api/sign_in', post({ link: tokenOf(link) }))
    assert.equal(again.status, 401)
    assert.match(again.text, /this link was used, or is too old/)
  })

  test('of two requests with one link one signs in', async () => {
    const body = { link: tokenOf(harness.console.link()) }
    const codes = await Promise.all(
      [1, 2].map(() => harness.codeOf('/console/api/sign_in', post(body))),
    )
    assert.deepEqual(codes.toSorted(), ['bad_signature', 'ok'])
  })

  test('it ends after ten minutes', async () => {
    const [in_time, late] = [tokenOf(harness.console.link()), tokenOf(harness.console.link())]
    harness.clock.advance(link_ms_max - 1)
    assert.equal(await harness.codeOf('/console/api/sign_in', post({ link: in_time })), 'ok')
    harness.clock.advance(1)
    assert.equal(
      await harness.codeOf('/console/api/sign_in', post({ link: late })),
      'bad_signature',
    )
  })

  test('so many are kept, the newest', async () => {
    const links = Array.from({ length: links_max + 1 }, () => tokenOf(harness.console.link()))
    const [first, second] = links
    assert.equal(
      await harness.codeOf('/console/api/sign_in', post({ link: first })),
      'bad_signature',
    )
    assert.equal(await harness.codeOf('/console/api/sign_in', post({ link: second })), 'ok')
  })

  for (const input of [{}, null, [], 7, { link: 7 }, { user: '1' }, { user: 1, secret: 'x' }]) {
    test(`${JSON.stringify(input)} is no sign-in`, async () => {
      assert.equal(await harness.codeOf('/console/api/sign_in', post(input)), 'bad_request')
    })
  }
})

describe('the cookie', () => {
  const cookieOf = async (headers: Record<string, string>): Promise<string> => {
    const link = harness.console.link().split('#link=')[1]
    const sent = post({ link }, { headers: { ...headers, ...json } })
    return String((await harness.ask('/console/api/sign_in', sent)).headers['set-cookie'])
  }
  test('is of no use to scripts, other sites and other paths', async () => {
    const form = new RegExp(
      `^conveyor_console_${harness.port}=[\\w-]{43}; Path=/console; Max-Age=43200; HttpOnly; SameSite=Strict$`,
    )
    assert.match(await cookieOf({}), form)
  })
  test('is for TLS alone where the browser speaks that to a proxy', async () => {
    assert.match(await cookieOf({ Origin: 'https://me', Host: 'me' }), /; Secure$/)
  })
  test('among others it is found, and another one is none', async () => {
    const asks: [cookie: string, code: string][] = [
      [`a=b; ${me.cookie}; c=d`, 'ok'],
      [me.cookie.replace(/=.*/, `=tossed; ${me.cookie}`), 'ok'],
      [`${me.cookie}; ${me.cookie}x`, 'ok'],
      [`x${me.cookie}`, 'bad_signature'],
      [me.cookie.replace('=', '= '), 'bad_signature'],
      [me.cookie.slice(0, -1), 'bad_signature'],
      [`${me.cookie}x`, 'bad_signature'],
      [`conveyor_console_${harness.port}=`, 'bad_signature'],
      ['', 'bad_signature'],
    ]
    for (const [Cookie, code] of asks) {
      assert.equal(await harness.codeOf('/console/session', { headers: { Cookie } }), code, Cookie)
    }
  })
})

describe('a session', () => {
  test('says who it is, what it may and where the servers are', async () => {
    const { text } = await harness.ask('/console/session', { as: me })
    assert.deepEqual(JSON.parse(text), me.session)
    assert.deepEqual(Object.keys(me.session), [
      ...['name', 'right', 'token', 'version', 'servers', 'command_line'],
    ])
  })

  test('ends when it is signed out of, for whoever has its cookie', async () => {
    const answer = await harness.call('sign_out', {}, me)
    assert.equal(answer.status, 200)
    const [cookie] = answer.headers['set-cookie'] ?? []
    assert.match(String(cookie), /=; Path=\/console; Max-Age=0; HttpOnly; SameSite=Strict$/)
    assert.equal(await harness.codeOf('/console/session', { as: me }), 'bad_signature')
    assert.equal((await harness.call('tasks', {}, me)).status, 401)
    assert.equal(await harness.codeOf('/console/live?view=overview', { as: me }), 'bad_signature')
    assert.deepEqual(harness.told.slice(0, 1), [
      { event: 'console_session', what: 'ended', by: 'link' },
    ])
  })

  test('ends after an hour without use, and after twelve with it', async () => {
    for (let hours = 0; hours < 11; hours++) {
      harness.clock.advance(idle_ms_max - 1)
      assert.equal((await harness.call('bulk_jobs', {}, me)).status, 200, `after ${hours} hours`)
    }
    const left_ms = session_ms_max - 11 * (idle_ms_max - 1)
    harness.clock.advance(left_ms - idle_ms_max)
    assert.equal(await harness.codeOf('/console/session', { as: me }), 'ok')
    harness.clock.advance(idle_ms_max - 1)
    assert.equal(await harness.codeOf('/console/session', { as: me }), 'ok')
    harness.clock.advance(1)
    assert.equal(await harness.codeOf('/console/session', { as: me }), 'bad_signature')
  })

  test('a page that asks by itself keeps none alive', async () => {
    harness.clock.advance(idle_ms_max - 1)
    assert.equal((await harness.call('frame', { view: 'overview' }, me)).status, 200)
    harness.clock.advance(1)
    assert.equal((await harness.call('frame', { view: 'overview' }, me)).status, 401)
  })

  test('is not known to another server, such as this one restarted', async () => {
    await using other = await openHarness()
    const cookie = me.cookie.replace(String(harness.port), String(other.port))
    assert.equal(await other.codeOf('/console/session', { headers: { cookie } }), 'bad_signature')
  })

  test('ends where its browser signs in anew', async () => {
    const link = harness.console.link('look').split('#link=')[1]
    await harness.ask('/console/api/sign_in', post({ link }, { as: me }))
    assert.equal(await harness.codeOf('/console/session', { as: me }), 'bad_signature')
  })

  test('there are so many at most; the one unused for longest ends', async () => {
    const many: SignedIn[] = []
    for (let at = 0; at < sessions_max; at++) {
      many.push(await harness.as('look'))
      if (at === 5)
        assert.equal(await harness.codeOf('/console/session', { as: many[0] as SignedIn }), 'ok')
    }
    await harness.as('look')
    const first = await Promise.all(
      many.slice(0, 3).map((as) => harness.codeOf('/console/session', { as })),
    )
    assert.deepEqual(first, ['ok', 'bad_signature', 'ok'])
  })
})

describe('the token of a session', () => {
  const rows: readonly (readonly [what: string, headers: Record<string, string>, ok: boolean])[] = [
    ['as it is', {}, true],
    ['empty', { 'X-Conveyor-Token': '' }, false],
    ['another', { 'X-Conveyor-Token': 'x'.repeat(43) }, false],
  ]
  for (const name of ['tasks', 'cancel', 'sign_out', 'frame']) {
    for (const [what, headers, ok] of rows) {
      test(`${name} with it ${what}: ${ok ? 'taken' : 'refused'}`, async () => {
        const sent = post({ view: 'overview' }, { as: me, headers })
        const { status, text } = await harness.ask(`/console/api/${name}`, sent)
        if (ok) assert.notEqual(status, 403, text)
        else assert.match(`${status} ${text}`, /^403 .*x-conveyor-token is another/)
      })
    }
  }
  test('that of another session is refused', async () => {
    const other = await harness.as('administer')
    const mixed = { ...me, token: other.token }
    assert.equal((await harness.call('tasks', {}, mixed)).status, 403)
  })
})

describe('what each right may', () => {
  const needs: Readonly<Record<TableCall, Right>> = {
    ...{ frame: 'look', process: 'look', versions: 'look', find: 'look', tasks: 'look' },
    ...{ task: 'look', bulk_jobs: 'look' },
    ...{ modify: 'operate', retry: 'operate', move: 'operate', cancel: 'operate' },
    ...{ bulk_count: 'operate', bulk: 'operate', bulk_resume: 'operate' },
    ...{ pause: 'administer', resume: 'administer', import: 'administer' },
  }
  for (const right of rights) {
    test(right, async () => {
      const as = await harness.as(right)
      for (const [name, needed] of Object.entries(needs)) {
        const { status, text } = await harness.call(name, { no_member: 1 }, as)
        const is_allowed = rights.indexOf(right) >= rights.indexOf(needed)
        const code = JSON.parse(text).error ?? 'ok'
        assert.equal(code === 'access_denied', !is_allowed, `${name} ${code}`)
        assert.equal(status === 403, !is_allowed, name)
        if (!is_allowed)
          assert.match(text, new RegExp(`needs the right ${needed}; .* has ${right}"`))
      }
    })
  }
  test('each call of the table is tried', () => {
    assert.deepEqual(Object.keys(needs).toSorted(), Object.keys(calls).toSorted())
  })
})
