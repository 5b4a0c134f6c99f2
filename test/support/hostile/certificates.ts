/**
 * Certificates at the gRPC server: those whose connection is refused, and the user that the names of
 * the others act as, also where the server is strict.
 */
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { serveGrpc } from '../../../src/grpc.ts'
import {
  makeCa,
  makeCertificate,
  makeClient,
  type TestCertificate,
  type Wanted,
} from '../grpc-certs.ts'
import { openClient } from '../grpc-client.ts'
import { openGrpc, type TestGrpc } from '../grpc-server.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

const create = { conv_id: '1234' }

/** [name, the code that is told, the certificate; undefined: none] */
export const refused_certificates: readonly (readonly [
  string,
  string,
  (ca: TestCertificate, other: TestCertificate) => Promise<TestCertificate | undefined>,
])[] = [
  ['no certificate', 'no_certificate', async () => undefined],
  ['the certificate of another CA', 'unknown_authority', (_, other) => makeClient(other)],
  [
    'one of another CA with the same name',
    'unknown_authority',
    async () => makeClient(await makeCa()),
  ],
  ['an expired one', 'expired', (ca) => makeClient(ca, { from_days: -3, to_days: -1 })],
  ['one not yet valid', 'not_yet_valid', (ca) => makeClient(ca, { from_days: 1, to_days: 3 })],
  ['one for servers', 'not_for_clients', (ca) => makeClient(ca, { usage: ['serverAuth'] })],
  ['one for nothing in particular', 'not_for_clients', (ca) => makeClient(ca, { usage: [] })],
  ['a self-signed one', 'unknown_authority', () => makeCertificate({ usage: ['clientAuth'] })],
  ['a self-signed one that calls itself a CA', 'unknown_authority', () => makeCa()],
  ['one signed by a client', 'unknown_authority', async (ca) => makeClient(await makeClient(ca))],
]

const uri = (value: string) => ({ type: 'url', value }) as const
const dns = (value: string) => ({ type: 'dns', value }) as const
type Prepare = (engine: Engine, sha256: string) => Promise<unknown>
const bind =
  (user: string, ...names: string[]): Prepare =>
  async ({ users }) => {
    for (const name of names) await users.bind(user, name)
  }

const boundThen =
  (happens: Prepare): Prepare =>
  async (engine, sha256) => {
    await engine.users.bind('13000', 'uri:a:1')
    await happens(engine, sha256)
  }
const a_uri: Wanted = { san: [uri('a:1')] }

/**
 * 13000 may use process 1234, 13001 no process at all. The last two: what a create in 1234 ends
 * with, without and with `strict`.
 */
const denied = 'PERMISSION_DENIED'
const names: readonly (readonly [string, Wanted, Prepare, string, string])[] = [
  ['nothing bound', a_uri, bind('13000'), 'OK', denied],
  ['a uri bound', a_uri, bind('13000', 'uri:a:1'), 'OK', 'OK'],
  ['a dns bound', { san: [dns('a.b')] }, bind('13000', 'dns:a.b'), 'OK', 'OK'],
  ['a cn bound', { cn: 'joe' }, bind('13000', 'cn:joe'), 'OK', 'OK'],
  ['the fingerprint bound', {}, (e, sha) => e.users.bind('13000', `sha256:${sha}`), 'OK', 'OK'],
  ['bound to a user without the grant', a_uri, bind('13001', 'uri:a:1'), denied, denied],
  [
    'another type of the same text bound',
    { san: [dns('a.b')] },
    bind('13001', 'uri:a.b', 'cn:a.b'),
    'OK',
    denied,
  ],
  [
    'two names bound to one user',
    { san: [uri('a:1'), dns('a.b')] },
    bind('13000', 'uri:a:1', 'dns:a.b'),
    'OK',
    'OK',
  ],
  [
    'two names bound to two users',
    { san: [uri('a:1'), dns('a.b')] },
    boundThen((e) => e.users.bind('13001', 'dns:a.b')),
    denied,
    denied,
  ],
  [
    'the cn bound, beside other names',
    { cn: 'joe', san: [uri('a:1')] },
    bind('13001', 'cn:joe'),
    'OK',
    denied,
  ],
  [
    'the cn bound, beside an alternative name of no use',
    { cn: 'joe', san: [{ type: 'email', value: 'joe@a.b' }] },
    bind('13001', 'cn:joe'),
    'OK',
    denied,
  ],
  [
    'a name that reads like two in a list',
    { san: [uri('a:1, DNS:a.b')] },
    bind('13001', 'dns:a.b', 'uri:a:1'),
    'OK',
    denied,
  ],
  ['a cn that reads like a typed name', { cn: 'uri:a:1' }, bind('13001', 'uri:a:1'), 'OK', denied],
  [
    'the fingerprint refused',
    a_uri,
    boundThen((e, sha) => e.users.unbind(`sha256:${sha}`)),
    denied,
    denied,
  ],
  ['a binding taken away', a_uri, boundThen((e) => e.users.unbind('uri:a:1')), denied, denied],
  ['its user removed', a_uri, boundThen((e) => e.users.remove('13000')), denied, denied],
  ['given every process', a_uri, (e) => e.users.bindAll('uri:a:1'), 'OK', 'OK'],
]

type Sent = (server: TestGrpc, other: TestCertificate) => Promise<string>

const rows: readonly HostileRow<Sent>[] = [
  ...refused_certificates.map(
    ([says, , make]): HostileRow<Sent> => [
      says,
      'UNAVAILABLE',
      async ({ grpc, ca }, other) => {
        const client = openClient(grpc.address, { ca, client: await make(ca, other) })
        const answer = await client.statusOf('CreateTask', create)
        client.close()
        return answer
      },
    ],
  ),
  ...names.map(
    ([says, wanted, prepare, lenient, strict]): HostileRow<Sent> => [
      says,
      `${lenient}, strict: ${strict}`,
      () => answersTo(wanted, prepare),
    ],
  ),
]

/** Of a server and a strict one, over an engine of their own. */
async function answersTo(wanted: Wanted, prepare: Prepare): Promise<string> {
  const server = await openGrpc()
  await server.engine.users.add({ id: '13001' })
  const client = await makeClient(server.ca, wanted)
  await prepare(server.engine, client.sha256)
  const options = { port: 0, tls: { folder: server.folder }, strict: true }
  const strict_server = await serveGrpc(server.engine, options)
  const strict = openClient(strict_server.address, { ca: server.ca, client })
  const [of_lenient, of_strict] = [
    await server.connect(client).statusOf('CreateTask', create),
    await strict.statusOf('CreateTask', create),
  ]
  strict.close()
  await strict_server.drain()
  await server.close()
  return `${of_lenient}, strict: ${of_strict}${server.bugs.length > 0 ? ', and a bug' : ''}`
}

async function open(): Promise<HostileRunner<Sent>> {
  const server = await openGrpc()
  const other = await makeCa('another CA')
  const honest = server.connect()
  return {
    bugs: server.bugs,
    answerTo: (sent) => sent(server, other),
    honest: async () => (await honest.statusOf('CreateTask', create)).toLowerCase(),
    close: () => server.close(),
  }
}

export const hostile_certificates: HostileClass<Sent> = { name: 'certificates', rows, open }
