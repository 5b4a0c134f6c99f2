/** Which addresses a call may connect to, and how `allow_hosts` is parsed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  nonPublicReason,
  v4_refused,
  v6_refused,
  v6_wrappers,
} from '../src/executors/call-address.ts'
import { hostOf, readAllowHosts, readUrl } from '../src/executors/call-resolver.ts'

const global_addresses = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '2001:200::1',
  '2001:4860:4860::8888',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
  '2002:808:808::1',
]

test('a call may connect to global unicast addresses', () => {
  for (const address of global_addresses) assert.equal(nonPublicReason(address), undefined, address)
})

test('each row of the tables refuses its own first address', () => {
  for (const [prefix, , what] of [...v4_refused, ...v6_refused]) {
    assert.equal(nonPublicReason(prefix), what, prefix)
  }
  assert.equal(v6_wrappers.length, 4)
})

const allowed: [entry: string, compares: string][] = [
  ['127.0.0.1:8080', '127.0.0.1:8080'],
  ['Intranet.Example:80', 'intranet.example:80'],
  ['intranet.example:443', 'intranet.example:443'],
  ['[::1]:9000', '[::1]:9000'],
  ['[0:0::1]:9000', '[::1]:9000'],
  ['0x7f.1:8080', '127.0.0.1:8080'],
]

for (const [entry, compares] of allowed) {
  test(`${entry} is allowed as ${compares}`, () => {
    assert.deepEqual([...readAllowHosts([entry])], [compares])
  })
}

for (const entry of [
  '',
  'host',
  'host:',
  ':80',
  'host:99999',
  'http://host:80',
  'a b:80',
  '::1:80',
  'host:80/x',
  'u@host:80',
]) {
  test(`allow_hosts refuses "${entry}"`, () => {
    assert.throws(() => readAllowHosts([entry]), { name: 'RangeError' })
  })
}

const urls: [url: string, host: string][] = [
  ['http://a.example/x', 'a.example:80'],
  ['https://a.example', 'a.example:443'],
  ['HTTPS://A.example:8443/', 'a.example:8443'],
  ['http://2130706433/', '127.0.0.1:80'],
  ['http://0177.0.0.1/', '127.0.0.1:80'],
  ['http://[::ffff:127.0.0.1]:81/', '[::ffff:7f00:1]:81'],
]

for (const [text, host] of urls) {
  test(`${text} goes to ${host}`, () => {
    const url = readUrl(text)
    assert.ok(url instanceof URL)
    assert.equal(hostOf(url), host)
  })
}
