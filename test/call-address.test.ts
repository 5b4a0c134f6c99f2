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

/** The first, the last and one in the middle of each block, and other ways to write them. */
const refused_addresses = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.100.100.200',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.8',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '0:0:0:0:0:ffff:a00:1',
  '::ffff:169.254.169.254',
  '::ffff:0:127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b:1::1',
  '2002:7f00:1::',
  '2002:a00:1::1',
  '100::1',
  '2001::1',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2001:2::1',
  '2001:10::1',
  '2001:20::1',
  '2001:1ff:ffff::1',
  '2001:db8::1',
  '3fff::1',
  '3fff:fff:ffff::1',
  '5f00::1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  '2606:4700::1%eth0',
  'fec0::1',
  'ff02::1',
  'localhost',
  '',
  '1.2.3',
]

test('a call may connect to global unicast addresses', () => {
  for (const address of global_addresses) assert.equal(nonPublicReason(address), undefined, address)
})

test('a call may connect to no other address', () => {
  for (const address of refused_addresses)
    assert.notEqual(nonPublicReason(address), undefined, address)
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

const bad_urls: [text: string, description: string][] = [
  ...[
    ...['', 'a.example', '//a.example', 'a.example:80/x', 'localhost:80', '/x', 'unix:/x'],
    ...['file:///etc/passwd', 'ftp://a.example', 'gopher://a', 'javascript:1'],
  ].map((text): [string, string] => [text, 'no_scheme']),
  ...['http://', 'http://a b/', 'http://a:99999/'].map((text): [string, string] => [
    text,
    'no URL that can be read',
  ]),
  ['http://a.exam\nple/', 'a control character in the URL'],
]

for (const [text, description] of bad_urls) {
  test(`${JSON.stringify(text)} is no URL to call`, () => {
    assert.deepEqual(readUrl(text), { cause: 'bad_url', description })
  })
}
