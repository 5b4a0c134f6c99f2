/**
 * Calls that a process is led to make inwards: names that resolve to addresses which are not public,
 * such addresses in every way that they may be written, schemes of other servers, and redirects.
 * None of them may reach the server that listens inside.
 */

import { call, requestOf } from '../call-executor.ts'
import { callServer } from '../call-server.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

/** The first, the last and one in the middle of each block, and other ways to write them. */
const refused_addresses = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.100.100.200'],
  ...['100.127.255.255', '127.0.0.1', '127.255.255.254', '169.254.169.254', '172.16.0.1'],
  ...['172.31.255.255', '192.0.0.8', '192.0.2.1', '192.88.99.1', '192.168.0.1', '198.18.0.1'],
  ...['198.19.255.255', '198.51.100.7', '203.0.113.7', '224.0.0.1', '239.255.255.255', '240.0.0.1'],
  ...['255.255.255.255', '::', '::1', '0:0:0:0:0:0:0:1', '::127.0.0.1', '::ffff:127.0.0.1'],
  ...['::ffff:7f00:1', '0:0:0:0:0:ffff:a00:1', '::ffff:169.254.169.254', '::ffff:0:127.0.0.1'],
  ...['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b:1::1', '2002:7f00:1::', '2002:a00:1::1'],
  ...['100::1', '2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:2::1', '2001:10::1'],
  ...['2001:20::1', '2001:1ff:ffff::1', '2001:db8::1', '3fff::1', '3fff:fff:ffff::1', '5f00::1'],
  ...['fc00::1', 'fd00:ec2::254', 'fe80::1', 'fe80::1%eth0', '2606:4700::1%eth0', 'fec0::1'],
  ...['ff02::1', 'localhost', '', '1.2.3'],
]

/** Each is written for the server inside, by its port; none of them needs a name server. */
const written = [
  ...['http://127.0.0.1:PORT/', 'http://127.1:PORT/', 'http://127.0.1:PORT/', 'http://0:PORT/'],
  ...['http://2130706433:PORT/', 'http://0x7f000001:PORT/', 'http://017700000001:PORT/'],
  ...['http://0177.0.0.1:PORT/', 'http://0x7f.0.0.1:PORT/', 'http://0x7f.1:PORT/'],
  ...['http://0.0.0.0:PORT/', 'http://127.255.255.254:PORT/', 'http://127.0.0.1.:PORT/'],
  ...['http://[::1]:PORT/', 'http://[::]:PORT/', 'http://[0:0:0:0:0:0:0:1]:PORT/'],
  ...[
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://[::127.0.0.1]:PORT/',
  ],
  ...['http://[64:ff9b::7f00:1]:PORT/', 'http://[2002:7f00:1::]:PORT/', 'http://[fe80::1]:PORT/'],
  ...['http://user:password@127.0.0.1:PORT/', 'http://public.example@127.0.0.1:PORT/'],
  ...['http://127.0.0.1:PORT\\@public.example/', 'http://127.0.0.1:PORT#@public.example/'],
  ...['http://127.0.0.1:PORT/?@public.example', 'http:127.0.0.1:PORT/', 'http:\\\\127.0.0.1:PORT/'],
  ...['http:////127.0.0.1:PORT/', 'HTTP://127.0.0.1:PORT/', 'https://127.0.0.1:PORT/'],
  ...['http://\uff11\uff12\uff17.0.0.1:PORT/', 'http://127\u30020\u30020\u30021:PORT/'],
  ...['http://%31%32%37.0.0.1:PORT/', 'http://\u2460\u2461\u2466.0.0.1:PORT/'],
  ...['http://169.254.169.254/latest/meta-data/', 'http://[fd00:ec2::254]/latest/meta-data/'],
  ...['http://100.100.100.200/latest/', 'http://192.0.0.192/opc/v2/', 'http://0xa9fea9fe/'],
  ...['http://[::ffff:169.254.169.254]/', 'http://2852039166/', 'http://0251.0376.0251.0376/'],
]

/** Names, all of which resolve to the server inside. */
const named = [
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ip6-localhost', 'public.example'],
  ...[
    'metadata.google.internal',
    '127.0.0.1.public.example',
    'kubernetes.default.svc',
    'l\u00f6c.example',
  ],
]

/** [what is no URL to call, why]. */
const no_url: readonly (readonly [string, string])[] = [
  ...[
    ...['', 'a.example', '//a.example', 'a.example:80/x', 'localhost:80', '/x', 'unix:/x'],
    ...['file:///etc/passwd', 'ftp://a.example', 'gopher://a', 'javascript:1', 'data:,x'],
    ...['dict://a:1/', 'ldap://a', 'jar:http://a!/', 'ws://a', 'blob:http://a', 'ttp://a'],
    ' http://127.0.0.1:PORT/',
  ].map((url) => [url, 'no_scheme'] as const),
  ...[
    ...['http://', 'http://a b/', 'http://a:99999/', 'http://256.0.0.1/', 'http://1.2.3.4.5/'],
    ...['http://[::1%25lo]:PORT/', 'http://[::1/', 'http://\u00ad/'],
  ].map((url) => [url, 'no URL that can be read'] as const),
  ...['http://a.exam\nple/', 'http://127.0.0.1\t:PORT/', 'http://a\0/'].map(
    (url) => [url, 'a control character in the URL'] as const,
  ),
]

/** Where the answer of an allowed server sends the call. */
const redirects = [
  ...['http://127.0.0.1:PORT/', 'http://inward.example:PORT/', '//0x7f000001:PORT/'],
  ...['http://[::1]:PORT/', 'http://[::ffff:7f00:1]:PORT/', 'http://a:b@127.0.0.1:PORT/'],
  ...['http://169.254.169.254/latest/meta-data/', 'https://localhost:PORT/', '\\\\127.0.0.1:PORT/'],
]
const redirects_elsewhere: readonly (readonly [string, string])[] = [
  ...['file:///etc/passwd', 'gopher://127.0.0.1:PORT/', 'data:,x', 'unix:/x', 'javascript:1'].map(
    (url) => [url, 'a redirect: no_scheme'] as const,
  ),
  ['http://', 'a redirect: no URL that can be read'],
]

interface Sent {
  readonly url: string
  /** What its name resolves to. */
  readonly addresses: readonly string[]
  /** Where the first answer sends it, which comes from a server that may be called. */
  readonly to?: string
}
type Row = HostileRow<Sent>

const refused = 'refused_address'
const addresses = ['127.0.0.1']
const public_url = 'http://public.example:PORT/'
const sentTo = (to: string): Sent => ({ url: 'http://allowed/', to, addresses })
const rows: readonly Row[] = [
  ...refused_addresses.map(
    (address): Row => [
      `a name at ${JSON.stringify(address)}`,
      refused,
      { url: public_url, addresses: [address] },
    ],
  ),
  [
    'a name at several, none public',
    refused,
    { url: public_url, addresses: ['::1', '::ffff:127.0.0.1', '10.0.0.1'] },
  ],
  ...written.map((url): Row => [url, refused, { url, addresses }]),
  ...named.map((name): Row => [name, refused, { url: `http://${name}:PORT/`, addresses }]),
  ...no_url.map(([url, code]): Row => [JSON.stringify(url), code, { url, addresses }]),
  ...redirects.map((to): Row => [`sent to ${to}`, refused, sentTo(to)]),
  ...redirects_elsewhere.map(([to, code]): Row => [`sent to ${to}`, code, sentTo(to)]),
]

async function open(): Promise<HostileRunner<Sent>> {
  const inner = await callServer((_asked, _request, response) => response.end('{}'))
  let to = ''
  const allowed = await callServer((_asked, _request, response) =>
    response.writeHead(307, { location: to }).end(),
  )
  const portIn = (text: string): string => text.replace('PORT', String(inner.port))
  return {
    bugs: [],
    async answerTo(sent) {
      to = portIn(sent.to ?? '')
      const url = sent.to === undefined ? portIn(sent.url) : allowed.url
      const outcome = await call(requestOf(url), {
        lookup: async () => sent.addresses,
        // What is allowed is a host with its port, so neither of these opens the server inside.
        allow_hosts: [allowed.host, '127.0.0.1:1', `other.example:${inner.port}`],
      })
      if (inner.asked.splice(0).length > 0) return 'reached'
      return outcome.outcome === 'done' ? 'done' : answerOf(outcome.description)
    },
    async honest() {
      const given = { allow_hosts: [inner.host] }
      const outcome = await call(requestOf(inner.url), given)
      return inner.asked.splice(0).length === 1 && outcome.outcome === 'done' ? 'ok' : 'not reached'
    },
    async close() {
      await Promise.all([inner.close(), allowed.close()])
    },
  }
}

function answerOf(description: string): string {
  return / is not a public address: /.test(description) ? 'refused_address' : description
}

export const hostile_addresses: HostileClass<Sent> = { name: 'addresses', rows, open }
