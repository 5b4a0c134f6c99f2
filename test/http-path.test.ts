/** The path grammar (wire 1.1), row by row. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { routeUnder } from '../src/server/http/path.ts'

const hex = '0123456789abcdef0123456789abcdef01234567'
const good = `/api/1/json/13000/1370442000/${hex}`

const served: [string, string, [1 | 2, string, string]][] = [
  ['version 1', good, [1, '13000', '1370442000']],
  ['version 2', `/api/2/json/13000/1370442000/${hex}`, [2, '13000', '1370442000']],
  [
    'upper-case hex',
    `/api/1/json/13000/1370442000/${hex.toUpperCase()}`,
    [1, '13000', '1370442000'],
  ],
  [
    'a fraction',
    `/api/1/json/13000/1370442000.123456789/${hex}`,
    [1, '13000', '1370442000.123456789'],
  ],
  ['the shortest', `/api/1/json/1/1/${hex}`, [1, '1', '1']],
  [
    'the longest',
    `/api/1/json/9999999999999999/9999999999.9/${hex}`,
    [1, '9999999999999999', '9999999999.9'],
  ],
  ['a query', `${good}?a=b/c`, [1, '13000', '1370442000']],
  ['an empty query', `${good}?`, [1, '13000', '1370442000']],
]

const header_signed: [string, 1 | 2][] = [
  ['/api/1/json', 1],
  ['/api/1/json/', 1],
  ['/api/2/json', 2],
  ['/api/2/json/', 2],
  ['/api/2/json?a=b/c', 2],
  ['/api/1/json/?', 1],
]

const addresses: [string, object][] = [
  [`/api/1/json/public/1234/${hex}`, { kind: 'webhook', form: 'json', conv_id: '1234' }],
  [`/api/2/nvp/public/1234/${hex}?a`, { kind: 'webhook', form: 'nvp', conv_id: '1234' }],
  [`/api/2/json/public/a%2Fb%20!/${hex}`, { kind: 'webhook', form: 'json', conv_id: 'a/b !' }],
  [`/api/1/json/callback/1234/wait/${hex}`, { kind: 'callback', conv_id: '1234', node_id: 'wait' }],
]

const unknown: [string, string][] = [
  ['an address of version 3', `/api/3/json/public/1234/${hex}`],
  ['a callback as a form', `/api/1/nvp/callback/1234/wait/${hex}`],
  ['an address in upper case', `/api/1/json/public/1234/${hex.toUpperCase()}`],
  ['an address with a closing slash', `/api/1/json/public/1234/${hex}/`],
  ['an address without a process', `/api/1/json/public/${hex}`],
  ['an address with an empty process', `/api/1/json/public//${hex}`],
  ['an address with a needless escape', `/api/1/json/public/%31234/${hex}`],
  ['an address with an escape in lower case', `/api/1/json/public/a%2fb/${hex}`],
  ['an address with a needed escape left out', `/api/1/json/public/ф/${hex}`],
  ['an address with half an escape', `/api/1/json/public/a%2/${hex}`],
  ['an address that is not UTF-8', `/api/1/json/public/%ff/${hex}`],
  ['a closing slash', `${good}/`],
  ['a closing slash before a query', `${good}/?a`],
  ['an encoded slash', `/api/1/json/13000%2F1370442000/${hex}`],
  ['an encoded digit', `/api/%31/json/13000/1370442000/${hex}`],
  ['version 3', `/api/3/json/13000/1370442000/${hex}`],
  ['no version', `/api/json/13000/1370442000/${hex}`],
  ['a doubled closing slash', '/api/1/json//'],
  ['a user alone', '/api/1/json/13000'],
  ['a format that goes on', '/api/1/jsonl'],
  ['version 3 with headers', '/api/3/json'],
  ['an encoded path', '/api/1/jso%6e'],
  ['another format', `/api/1/xml/13000/1370442000/${hex}`],
  ['another case', `/API/1/json/13000/1370442000/${hex}`],
  ['a doubled slash', `//api/1/json/13000/1370442000/${hex}`],
  ['dots', `/x/../api/1/json/13000/1370442000/${hex}`],
  ['user 0', `/api/1/json/0/1370442000/${hex}`],
  ['a leading zero', `/api/1/json/013000/1370442000/${hex}`],
  ['17 digits', `/api/1/json/12345678901234567/1370442000/${hex}`],
  ['a user in letters', `/api/1/json/abc/1370442000/${hex}`],
  ['a sign', `/api/1/json/13000/-1370442000/${hex}`],
  ['an exponent', `/api/1/json/13000/1e9/${hex}`],
  ['a timestamp of 11 digits', `/api/1/json/13000/13704420000/${hex}`],
  ['a timestamp of 0', `/api/1/json/13000/0/${hex}`],
  ['a point without digits', `/api/1/json/13000/1370442000./${hex}`],
  ['a fraction of 10 digits', `/api/1/json/13000/1370442000.1234567890/${hex}`],
  ['a comma', `/api/1/json/13000/1370442000,5/${hex}`],
  ['39 digits of hex', `/api/1/json/13000/1370442000/${hex.slice(1)}`],
  ['41 digits of hex', `/api/1/json/13000/1370442000/${hex}0`],
  ['no hex', `/api/1/json/13000/1370442000/${'g'.repeat(40)}`],
  ['a fragment', `${good}#a`],
  ['a whole URL', `http://127.0.0.1${good}`],
  ['a line feed', `${good}\n`],
  ['other digits', `/api/1/json/١٣/1370442000/${hex}`],
  ['nothing', ''],
  ['a star', '*'],
  ['the root', '/'],
  ['health with a slash', '/healthz/'],
  ['health with more', '/healthzz'],
]

describe('path', () => {
  const route = routeUnder('')
  for (const [says, url, [version, user, timestamp]] of served) {
    test(`served: ${says}`, () => {
      assert.deepEqual(route(url), { kind: 'signed', version, user, timestamp, signature: hex })
    })
  }
  for (const [url, version] of header_signed) {
    test(`signed in headers: ${url}`, () => {
      assert.deepEqual(route(url), { kind: 'header_signed', version })
    })
  }
  for (const [url, target] of addresses) {
    test(url, () => assert.deepEqual(route(url), { ...target, hash: hex }))
  }
  test('the address of an answer', () => {
    const token = 'ab'.repeat(32)
    assert.deepEqual(route(`/api/sync/${token}?a`), { kind: 'sync_answer', token })
  })
  for (const [says, url] of unknown) {
    test(`unknown: ${says}`, () => assert.equal(route(url), undefined))
  }
  for (const url of ['/healthz', '/healthz?a']) {
    test(url, () => assert.deepEqual(route(url), { kind: 'health' }))
  }
})

describe('path under a base', () => {
  for (const base of ['/conveyor', '/conveyor/', '/a.b/c+d']) {
    const route = routeUnder(base)
    const prefix = base.replace(/\/$/, '')
    test(base, () => {
      assert.notEqual(route(prefix + good), undefined)
      assert.equal(route(good), undefined, 'the base is missing')
      assert.notEqual(route(`${prefix}/api/1/json/`), undefined)
      assert.equal(route('/api/1/json'), undefined, 'the base is missing')
      assert.equal(route(`${prefix}/${good}`), undefined, 'one slash too many')
      assert.equal(route(prefix.replace('.', 'x') + good) !== undefined, !prefix.includes('.'))
      assert.deepEqual(route(`${prefix}/healthz`), { kind: 'health' })
      assert.deepEqual(route('/healthz'), { kind: 'health' })
    })
  }
  for (const base of ['conveyor', 'http://x', '/a b', '/é']) {
    test(`refused: ${base}`, () => assert.throws(() => routeUnder(base), RangeError))
  }
})
