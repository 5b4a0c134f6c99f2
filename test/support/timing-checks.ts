/**
 * The checks of credentials whose time is measured, each with two classes of inputs that must take
 * the same: a credential that is wrong at its beginning and one wrong at its end, a user who is
 * known and one who is not. Inputs of both classes are made alike, and none is used twice: V8 keeps
 * the hash of a text that it has looked up before.
 */
import { hmacOf, signatureOf } from '../../src/codec/signature.ts'
import { signInUser } from '../../src/console/server/sign-in.ts'
import { isFault } from '../../src/core/faults.ts'
import type { Sign } from '../../src/engine/api/user-api.ts'
import type { ServedEngine } from '../../src/engine/served-engine.ts'
import { authenticate } from '../../src/server/http/authenticate.ts'
import { type OpsTarget, routeUnder } from '../../src/server/http/path.ts'
import { tokenAccess } from '../../src/server/operator/access.ts'
import { connectRaw } from './http-raw.ts'
import { conv_id, process_definition } from './http-server.ts'

export interface PreparedCheck {
  /** What the classes are. */
  readonly says: string
  /** Of the measurements of others, where each takes long; default 1. */
  readonly share?: number
  /** Called between inputs. */
  readonly between?: () => Promise<void>
  /** An input of the class, whose check is then measured. */
  prepare(which: 0 | 1): { readonly run: () => Promise<void> | undefined }
}

const bodies_bytes = [60, 900, 9_000]
const hex = '0123456789abcdef'
const route = routeUnder('')

export async function newChecks(
  engine: ServedEngine,
  port: number,
  fraction: () => number,
): Promise<{ readonly checks: readonly PreparedCheck[]; close(): Promise<void> }> {
  await engine.processes.put(process_definition)
  const first = '13000'
  const { secret } = await engine.users.add({ id: first })
  engine.addresses.serveAt('http://x.example')
  const { address, callbacks } = await engine.processes.webhook(conv_id, { address: 'new' })
  const webhook = String(address).slice(-40)
  const callback = String(callbacks[0]?.address).slice(-40)
  const timestamp = String(Math.floor(engine.clock.now_ms() / 1000))
  const bodies = bodies_bytes.flatMap((bytes) => [
    Buffer.alloc(bytes, 'a'),
    Buffer.alloc(bytes, 'b'),
  ])
  const signed = bodies.map((body) => ({
    body,
    path: signatureOf(timestamp, secret, body),
    hmac: hmacOf(timestamp, secret, body),
  }))

  const pick = <Item>(items: ArrayLike<Item>): Item =>
    items[Math.floor(fraction() * items.length)] as Item
  const randomHex = (length: number): string => Array.from({ length }, () => pick(hex)).join('')
  /** With one digit changed: the first, or the last. */
  const wrongAt = (right: string, which: 0 | 1): string => {
    const at = which === 0 ? 0 : right.length - 1
    const digit = hex[(hex.indexOf(right[at] as string) + 1 + Math.floor(fraction() * 15)) % 16]
    return right.slice(0, at) + digit + right.slice(at + 1)
  }

  const authenticated = (
    user: string,
    kind: 'path' | 'hmac',
    body: Buffer,
    signature: string,
  ): (() => undefined) => {
    const path = `/api/1/json${kind === 'hmac' ? '' : `/${user}/${timestamp}/${signature}`}`
    const target = route(fresh(path)) as OpsTarget
    const headers =
      kind === 'path'
        ? {}
        : {
            'x-api-login': fresh(user),
            'x-api-timestamp': fresh(timestamp),
            'x-api-signature': fresh(signature),
          }
    return () => refused(() => authenticate(engine, 300, target, headers, body))
  }

  const kinds = ['path', 'hmac'] as const
  const wrong_byte = kinds.map(
    (kind): PreparedCheck => ({
      says: `signature, ${kind}: first wrong digit, last wrong digit`,
      prepare(which) {
        const { body, [kind]: right } = pick(signed)
        return { run: authenticated(first, kind, body, wrongAt(right, which)) }
      },
    }),
  )
  let next_id = 20_000
  /**
   * Of the class 0 a user who may sign so, of the class 1 nobody. Other ids come now and then: where
   * one stands in a hash table has an effect of its own, which is to be the same for both classes.
   */
  const usersWho = (sign: Sign) => {
    let [known, unknown] = ['', '']
    return {
      of: (which: 0 | 1): string => (which === 0 ? known : unknown),
      async between(): Promise<void> {
        if (known !== '') await engine.users.remove(known)
        ;[known, unknown] = [String(next_id++), String(next_id++)]
        await engine.users.add({ id: known, sign })
      },
    }
  }
  const users = kinds.flatMap((kind) =>
    (['both', kind === 'path' ? 'hmac' : 'path'] as const).map((sign): PreparedCheck => {
      const { of, between } = usersWho(sign)
      return {
        says: `signature, ${kind}: a user${sign === 'both' ? '' : ' of the other kind'}, none`,
        between,
        prepare(which) {
          const { body } = pick(signed)
          const signature = randomHex(kind === 'path' ? 40 : 64)
          return { run: authenticated(of(which), kind, body, signature) }
        },
      }
    }),
  )
  /** What each class names, made by the first two. Others come now and then, as users do. */
  const named = (
    make: (id: string) => Promise<unknown>,
    makeOther: (id: string) => Promise<unknown> = async () => {},
    prefix = '',
  ) => {
    let ids = ['', '']
    return {
      of: (which: 0 | 1): string => fresh(prefix + ids[which]),
      async between(): Promise<void> {
        ids = [String(next_id++), String(next_id++)]
        await make(ids[0] as string)
        await makeOther(ids[1] as string)
      },
    }
  }
  const put = (id: string) => engine.processes.put({ ...process_definition, obj_id: Number(id) })
  const open = async (id: string): Promise<void> => {
    await put(id)
    await engine.processes.webhook(id, { address: 'new' })
  }
  const setAlias = (id: string) => engine.processes.setAlias(`a${id}`, conv_id)
  const unknown = [
    ['a process, none', named(open)],
    ['a process, one that is closed', named(open, put)],
    ['an alias, none', named(setAlias, undefined, '@a')],
  ] as const
  const addresses: PreparedCheck[] = [
    ...unknown.map(
      ([says, { of, between }]): PreparedCheck => ({
        says: `webhook: ${says}`,
        between,
        prepare(which) {
          const [conv, hash] = [of(which), randomHex(40)]
          return { run: () => done(engine.addresses.findWebhook(conv, hash)) }
        },
      }),
    ),
    ...(['process', 'node'] as const).map(
      (what): PreparedCheck => ({
        says: `callback: a ${what}, none`,
        prepare(which) {
          const conv = fresh(what === 'process' && which === 1 ? '4321' : conv_id)
          const node = fresh(what === 'node' && which === 1 ? 'none' : 'wait')
          const hash = randomHex(40)
          return { run: () => done(engine.addresses.findCallback(conv, node, hash)) }
        },
      }),
    ),
    {
      says: 'webhook: first wrong digit, last wrong digit',
      prepare(which) {
        const hash = fresh(wrongAt(webhook, which))
        return { run: () => done(engine.addresses.findWebhook(fresh(conv_id), hash)) }
      },
    },
    {
      says: 'callback: first wrong digit, last wrong digit',
      prepare(which) {
        const hash = fresh(wrongAt(callback, which))
        return { run: () => done(engine.addresses.findCallback(conv_id, 'wait', hash)) }
      },
    },
  ]
  const token = randomHex(40)
  const access = tokenAccess(token)
  const visitors = usersWho('both')
  const operator: PreparedCheck[] = [
    {
      says: "operator's token: first wrong digit, last wrong digit",
      prepare(which) {
        const authorization = fresh(`Bearer ${wrongAt(token, which)}`)
        const request = { headers: { authorization } } as Parameters<typeof access.check>[0]
        return { run: () => refused(() => access.check(request)) }
      },
    },
    {
      says: "sign-in to the operator's page: first wrong character, last wrong character",
      prepare(which) {
        const at = which === 0 ? 0 : secret.length - 1
        const wrong = fresh(`${secret.slice(0, at)}!${secret.slice(at + 1)}`)
        return { run: () => refused(() => signInUser(() => engine, first, wrong)) }
      },
    },
    {
      says: "sign-in to the operator's page: a user, none",
      between: visitors.between,
      prepare(which) {
        const [id, wrong] = [fresh(visitors.of(which)), randomHex(secret.length)]
        return { run: () => refused(() => signInUser(() => engine, id, wrong)) }
      },
    },
  ]

  /** Made once it is used: the server ends a connection that is idle while others are measured. */
  let connecting: ReturnType<typeof connectRaw> | undefined
  const overSocket = (user: string, kind: 'path' | 'hmac', body: Buffer, signature: string) => {
    const path = `/api/1/json${kind === 'hmac' ? '' : `/${user}/${timestamp}/${signature}`}`
    const lines = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`]
    if (kind === 'hmac') {
      lines.push(`X-API-Login: ${user}`, `X-API-Timestamp: ${timestamp}`)
      lines.push(`X-API-Signature: ${signature}`)
    }
    return sent(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]), 401)
  }
  const sent = (bytes: Buffer, expected: number) => {
    connecting ??= connectRaw(port)
    return async (): Promise<void> => {
      const client = await (connecting as NonNullable<typeof connecting>)
      client.send(bytes)
      const { status } = await client.answer()
      if (status !== expected) throw new Error(`answered ${status}`)
    }
  }
  const [{ body: short, ...right }] = signed as [(typeof signed)[0]]
  const callers = usersWho('both')
  const over_socket = kinds.flatMap((kind): PreparedCheck[] => [
    {
      says: `over a socket, ${kind}: first wrong digit, last wrong digit`,
      share: 0.02,
      prepare: (which) => ({ run: overSocket(first, kind, short, wrongAt(right[kind], which)) }),
    },
    {
      ...{ says: `over a socket, ${kind}: a user, none`, share: 0.02 },
      between: callers.between,
      prepare(which) {
        const signature = randomHex(kind === 'path' ? 40 : 64)
        return { run: overSocket(callers.of(which), kind, short, signature) }
      },
    },
  ])
  const webhooks = unknown.map(
    ([says, { of, between }]): PreparedCheck => ({
      ...{ says: `over a socket, webhook: ${says}`, share: 0.02, between },
      prepare(which) {
        const path = `/api/1/json/public/${of(which).replace('@', '%40')}/${randomHex(40)}`
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`
        return { run: sent(Buffer.from(head), 404) }
      },
    }),
  )
  const close = async (): Promise<void> => void (await connecting)?.socket.destroy()
  const checks = [...wrong_byte, ...users, ...addresses, ...operator, ...over_socket, ...webhooks]
  return { checks, close }
}

/** The text as a new one. */
function fresh(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function refused(check: () => unknown): undefined {
  try {
    check()
  } catch (thrown) {
    if (isFault(thrown)) return undefined
    throw thrown
  }
  throw new Error('it was let in')
}

async function done(finding: Promise<unknown>): Promise<void> {
  if ((await finding) !== undefined) throw new Error('it was found')
}
