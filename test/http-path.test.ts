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

const query = `conv_signature=${hex}&conv_time=1370442000`
const in_query: [string, 1 | 2][] = [
  [`/api/1/json/13000?${query}&conv_id=1234`, 1],
  [`/api/2/json/13000?a=1&conv_id=x&${query}&b`, 2],
  [`/api/2/json/13000/?conv_time=1370442000&conv_signature=${hex.toUpperCase()}`, 2],
]

/** [path and query, what the caller is told] */
const malformed_query: [string, RegExp][] = [
  [`joe?${query}`, /^user: .*"joe"$/],
  [`13000?conv_signature=${hex}`, /^conv_time: Unix seconds; this is empty$/],
  [`13000?${query}&conv_time=1`, /^conv_time: Unix seconds; this is empty$/],
  [`13000?${query}&conv_signature=${hex}`, /^conv_signature: 40 hex.* this is empty$/],
  [`13000?conv_time=1e9&conv_signature=00`, /^conv_time: .*\. conv_signature: .* of them$/],
]

/** [digits, the kind that they are] */
const lengths: [number, boolean][] = [
  ...[56, 64, 96, 128].map((digits): [number, boolean] => [digits, true]),
  ...[39, 55, 57, 65, 127, 129].map((digits): [number, boolean] => [digits, false]),
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
  [`/api/2/xml/public/1234/${hex}`, { kind: 'webhook', form: 'xml', conv_id: '1234' }],
  [`/api/1/json/public/1234/${hex}/`, { kind: 'webhook', form: 'json', conv_id: '1234' }],
  [
    `/api/2/json/callback/1234/wait/${hex}/?a`,
    { kind: 'callback', conv_id: '1234', node_id: 'wait' },
  ],
  [`/api/1/json/callback/1234/wait/${hex}`, { kind: 'callback', conv_id: '1234', node_id: 'wait' }],
]

const unknown: [string, string][] = [
  ['an address of version 3', `/api/3/json/public/1234/${hex}`],
  ['a callback as a form', `/api/1/nvp/callback/1234/wait/${hex}`],
  ['an address whose hash looks like base64', `/api/1/json/public/1234/${'A'.repeat(27)}=`],
  ['an address in upper case', `/api/1/json/public/1234/${hex.toUpperCase()}`],
  ['an address with two closing slashes', `/api/1/json/public/1234/${hex}//`],
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
  ['a user with a query that does not sign', '/api/1/json/13000?conv_time=1'],
  ['a format that goes on', '/api/1/jsonl'],
  ['version 3 with headers', '/api/3/json'],
  ['an encoded path', '/api/1/jso%6e'],
  ['another format', `/api/1/xml/13000/1370442000/${hex}`],
  ['another case', `/API/1/json/13000/1370442000/${hex}`],
  ['a doubled slash', `//api/1/json/13000/1370442000/${hex}`],
  ['dots', `/x/../api/1/json/13000/1370442000/${hex}`],
  ['a whole URL', `http://127.0.0.1${good}`],
  ['nothing', ''],
  ['a star', '*'],
  ['the root', '/'],
  ['health with a slash', '/healthz/'],
  ['health with more', '/healthzz'],
]

const sha256 = Buffer.alloc(32, 0xab)

/** [segment, its text, what the caller is told of it] */
// biome-ignore format: a table
const malformed: ['user' | 'timestamp' | 'signature', string, string][] = [
  ['user', '0',                                                'this has a leading zero: "0"'],
  ['user', '013000',                                           'this has a leading zero: "013000"'],
  ['user', '12345678901234567',                                'this has over 16 digits: "12345678901234567"'],
  ['user', 'abc',                                              'this looks like a name: "abc"'],
  ['user', '١٣',                                               'this looks like a name: "١٣"'],
  ['user', '13000x',                                           'this is no such number: "13000x"'],
  ['user', '',                                                 'this is empty'],
  ['user', `"${'x'.repeat(99)}`,                               `this looks like a name: "\\"${'x'.repeat(39)}…"`],
  ['timestamp', '1370442000000',                               'this looks like milliseconds: "1370442000000"'],
  ['timestamp', '1370442000000.5',                             'this looks like milliseconds: "1370442000000.5"'],
  ['timestamp', '1370442000000000',                            'this looks like microseconds: "1370442000000000"'],
  ['timestamp', '1370442000000000000',                         'this looks like nanoseconds: "1370442000000000000"'],
  ['timestamp', '2013-06-05T14:20:00Z',                        'this looks like a date in ISO form: "2013-06-05T14:20:00Z"'],
  ['timestamp', '2013-06-05',                                  'this looks like a date in ISO form: "2013-06-05"'],
  ['timestamp', '20130605T142000Z',                            'this looks like a date in ISO form: "20130605T142000Z"'],
  ['timestamp', '',                                            'this is empty'],
  ['timestamp', '+1370442000',                                 'this has a sign: "+1370442000"'],
  ['timestamp', '%2B1370442000',                               'this has a sign: "%2B1370442000"'],
  ['timestamp', '-1370442000',                                 'this has a sign: "-1370442000"'],
  ['timestamp', '0',                                           'this has a leading zero: "0"'],
  ['timestamp', '13704420000',                                 'this has over 10 digits: "13704420000"'],
  ['timestamp', '1370442000.',                                 'a fraction has 1 to 9 digits: "1370442000."'],
  ['timestamp', '1370442000.1234567890',                       'a fraction has 1 to 9 digits: "1370442000.1234567890"'],
  ['timestamp', '1370442000,5',                                'this is no such number: "1370442000,5"'],
  ['timestamp', '1e9',                                         'this is no such number: "1e9"'],
  ['timestamp', 'now',                                         'this is no such number: "now"'],
  ['signature', '',                                            'this is empty'],
  ['signature', sha256.toString('base64').replaceAll('/', '%2F'), 'this looks like base64'],
  ['signature', sha256.subarray(0, 20).toString('base64url'),  'this looks like base64'],
  ['signature', hex.slice(1),                                  'this has another number of them'],
  ['signature', `${hex}0`,                                     'this has another number of them'],
  ['signature', 'g'.repeat(40),                                'this is not hex'],
  ['signature', `${hex}#a`,                                    'this is not hex'],
  ['signature', `${hex}\n`,                                    'this is not hex'],
]
const expected = {
  user: 'the number of a user, such as 13000',
  timestamp: 'Unix seconds',
  signature: '40 hex digits of a SHA-1, or 56, 64, 96 or 128 of a SHA-2',
}

describe('path', () => {
  const route = routeUnder('')
  for (const [says, url, [version, user, timestamp]] of served) {
    test(`served: ${says}`, () => {
      assert.deepEqual(route(url), { kind: 'signed', version, user, timestamp, signature: hex })
    })
  }
  for (const [url, version] of in_query) {
    test(`signed in the query: ${url}`, () => {
      const signed = { user: '13000', timestamp: '1370442000', signature: hex }
      assert.deepEqual(route(url), { kind: 'signed', version, ...signed })
    })
  }
  for (const [url, told] of malformed_query) {
    test(`malformed: ${url}`, () => {
      const target = route(`/api/1/json/${url}`) as { kind: string; mistakes: string }
      assert.equal(target.kind, 'malformed')
      assert.match(target.mistakes, told)
    })
  }
  for (const [digits, is_served] of lengths) {
    test(`${digits} digits`, () => {
      const target = route(`/api/1/json/13000/1370442000/${'a'.repeat(digits)}`)
      assert.equal(target?.kind, is_served ? 'signed' : 'malformed')
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
    assert.deepEqual(route(`/api/sync/${token}/`), { kind: 'sync_answer', token })
  })
  for (const [says, url] of unknown) {
    test(`unknown: ${says}`, () => assert.equal(route(url), undefined))
  }
  const signed = { user: '13000', timestamp: '1370442000', signature: hex }
  for (const [segment, text, told] of malformed) {
    const mistakes = `${segment}: ${expected[segment]}; ${told}`
    test(mistakes, () => {
      const { user, timestamp, signature } = Object.assign({ ...signed }, { [segment]: text })
      const url = `/api/2/json/${user}/${timestamp}/${signature}?a=/b`
      assert.deepEqual(route(url), { kind: 'malformed', mistakes })
    })
  }
  test('all three are told of', () => {
    const { mistakes } = route('/api/1/json/joe/0/') as { mistakes: string }
    assert.match(mistakes, /^user: .*"joe"\. timestamp: .*"0"\. signature: .* empty$/)
  })
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
