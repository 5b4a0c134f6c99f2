/**
 * `user add`, `list`, `rotate`, `remove` and `rekey`: the users who may sign requests. A new secret
 * is printed once and never read from the command line.
 */
import { defined } from '../../core/defined.ts'
import { type SignatureKind, signature_kinds } from '../../core/model.ts'
import { console_rights, type Sign } from '../../engine/api/user-api.ts'
import type { Admin } from '../../server/admin/verbs.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { ask, change, fileVerb, listVerb } from '../file-verb.ts'
import { decodeText, type Io, isConfirmed, readInput } from '../io.ts'
import { idJson, jsonOf, membersOf, printDone } from '../output.ts'
import { fields, linesText, timeText } from '../text.ts'
import { durationMs, flag, type Given, isOn, oneOf, text, type Verb, word } from '../verb.ts'

export const userVerbs: readonly Verb[] = [
  fileVerb('user add', {
    flags: [
      flag('id N', 'its number (default: the next free one)'),
      flag('name S', 'its name'),
      flag('sign HOW', 'the signatures it may use, as of `user sign` (default: both)'),
      flag('administer', 'let it use and change every process'),
    ],
    says: 'make a user and print its secret, once',
    async run(given, io) {
      const id = text(given, 'id')
      const name = text(given, 'name')
      const sign = signOf('--sign', text(given, 'sign'))
      if (id !== undefined) checkUserId(id)
      const administer = isOn(given, 'administer')
      const args = { ...defined({ id, name, sign }), ...(administer ? { administer } : {}) }
      const add = (admin: Admin) => admin.call('user.add', args)
      const made = await withAdmin(given, io, add, { if_missing: 'create' })
      return printSecret(given, io, made)
    },
  }),
  listVerb('user list', 'user.list', {
    says: 'list the users and what they may do',
    jsonOf: (user) =>
      jsonOf({
        id: idJson(user.id),
        ...membersOf(user, [
          'name',
          'create_time_ms',
          'secrets',
          'sign',
          'console',
          'is_administrator',
          'grants',
        ]),
      }),
    heads: ['USER', 'NAME', 'MADE', 'SECRETS', 'SIGN', 'PAGE', 'PROCESSES'],
    cellsOf: ({ id, name, create_time_ms, secrets, sign, console = '-', ...user }) => [
      ...[id, name, timeText(create_time_ms), String(secrets), String(sign), console],
      [
        ...(user.is_administrator ? ['all (administer)'] : []),
        ...user.grants.map(({ conv_id, can }) => `${conv_id} (${can.join(',')})`),
      ].join(' '),
    ],
  }),
  fileVerb('user rotate ID', {
    flags: [flag('grace TIME', 'how long the old secret still works, such as 24h')],
    says: 'give a user a new secret and print it, once',
    notes: ['Without --grace the old secret ends at once. TIME is a number and s, m, h or d.'],
    async run(given, io) {
      const id = word(given, 0)
      const grace = text(given, 'grace')
      const args = grace === undefined ? { id } : { id, grace_ms: durationMs(grace) }
      const made = await ask(given, io, 'user.rotate', args)
      return printSecret(given, io, made)
    },
  }),
  fileVerb('user sign ID HOW', {
    says: 'set which signatures a user may use, such as hmac, both, or path,path:sha256',
    notes: [
      'hmac is a signature in headers (HMAC-SHA-256), path one in the path or query (SHA-1), both',
      'is these two; path:sha224, path:sha256, path:sha384 and path:sha512 are the path’s with a',
      'longer digest. It holds from the next request on.',
    ],
    async run(given, io) {
      const id = word(given, 0)
      const sign = signOf('HOW', word(given, 1)) as Sign
      const shows = { id: idJson(id), sign: JSON.stringify(sign) }
      return change(given, io, 'user.sign', { id, sign }, shows)
    },
  }),
  fileVerb('user console ID RIGHT', {
    says: 'set the right of a user on the operator’s page: look, operate, administer or off',
    notes: ['A new user may not sign in there. It holds from the next request on.'],
    async run(given, io) {
      const id = word(given, 0)
      const right = oneOf('RIGHT', word(given, 1), [...console_rights, 'off'] as const)
      const args = right === undefined || right === 'off' ? { id } : { id, right }
      const shows = { id: idJson(id), console: JSON.stringify(args.right ?? null) }
      return change(given, io, 'user.console', args, shows)
    },
  }),
  fileVerb('user administer ID ON', {
    says: 'let a user use and change every process through the API, or no longer: on or off',
    notes: ['It holds from the next request on.'],
    async run(given, io) {
      const id = word(given, 0)
      const may = oneOf('ON', word(given, 1), ['on', 'off'] as const) === 'on'
      const shows = { id: idJson(id), administer: String(may) }
      return change(given, io, 'user.administer', { id, may }, shows)
    },
  }),
  fileVerb('user remove ID', {
    says: 'remove a user, its secrets and its grants',
    run(given, io) {
      const id = word(given, 0)
      return change(given, io, 'user.remove', { id }, { id: idJson(id), removed: 'true' })
    },
  }),
  fileVerb('user rekey', {
    flags: [
      flag('new-key-file FILE', 'has the new key, for one that lives elsewhere'),
      flag(
        'forget-secrets',
        'where the key is lost for good: remove all secrets, and make a new key',
      ),
      flag('yes', 'forget without asking for the number of users'),
    ],
    says: 'encrypt all secrets under a new key',
    notes: [
      'Secrets stay the same; the key that encrypts them in the file changes. It is a new key file',
      'beside the data, or the key (32 bytes in hex or base64) in CONVEYOR_NEW_KEY or in the file',
      'of --new-key-file; then CONVEYOR_KEY must hold it from the next start on.',
      'Backups made before need the old key: keep it until they are gone.',
      'With --forget-secrets users keep their processes and cannot sign until `user rotate` gives',
      'them a new secret; webhooks and callbacks get new addresses.',
    ],
    async run(given, io) {
      const secret_key = await newKeyOf(given, io)
      const forget_secrets = isOn(given, 'forget-secrets')
      const args = { forget_secrets, ...defined({ secret_key }) }
      const users: string[] = []
      const made = await withAdmin(given, io, async (admin) => {
        if (forget_secrets) users.push(...(await admin.call('user.list', {})).map(({ id }) => id))
        const asks = `all users (${users.length}) lose their secret for ever. Type their number: `
        const is_sure = !forget_secrets || isOn(given, 'yes')
        if (!is_sure && !(await isConfirmed(io, asks, users.length))) return undefined
        return admin.call('user.rekey', args)
      })
      if (made === undefined) return exits.refused
      const { secrets, key_id, key_path, old_key_id, old_key_path, for_all_nodes } = made
      const of_nodes = 'each node of the cluster needs this key, or it cannot be the owner:'
      const reaches =
        key_path === undefined
          ? 'set CONVEYOR_KEY at all of them'
          : 'copy the file beside the data file of each'
      const lines = [
        forget_secrets
          ? `forgot ${secrets} secrets; what is made from now on is under the key ${key_id}`
          : `encrypted ${secrets} secrets under the key ${key_id}`,
        key_path === undefined
          ? 'CONVEYOR_KEY must hold it from the next start on'
          : `it is in ${key_path}: keep a copy elsewhere`,
        ...(for_all_nodes ? [`${of_nodes} ${reaches}`] : []),
        forget_secrets
          ? `${io.program} user rotate ID gives a new one: ${users.join(' ')}`
          : `backups made before need the key ${old_key_id}: keep ${
              old_key_path ?? 'it'
            } until they are gone`,
      ]
      return printDone(given, io, made, linesText(lines))
    },
  }),
]

async function newKeyOf(given: Given, io: Io): Promise<string | undefined> {
  const path = text(given, 'new-key-file')
  const { CONVEYOR_NEW_KEY } = given.env
  if (path === undefined) return CONVEYOR_NEW_KEY
  if (CONVEYOR_NEW_KEY !== undefined) {
    throw usageError('the new key is in CONVEYOR_NEW_KEY or in --new-key-file, not in both')
  }
  return decodeText(await readInput(path, io), path)
}

function printSecret(
  given: Given,
  io: Io,
  { id, secret }: { readonly id: string; readonly secret: string },
): Promise<Exit> {
  const json = jsonOf({ id: idJson(id), secret: JSON.stringify(secret) })
  const rows = [['user', id] as const, ['secret', secret] as const]
  const text = `${fields(rows)}This is the only time the secret is shown.\n`
  return printDone(given, io, json, text)
}

function signOf(name: string, given: string | undefined): Sign | undefined {
  if (given === undefined || given === 'both') return given
  const kinds = given.split(',').map((kind) => oneOf(name, kind, sign_words) as SignatureKind)
  return kinds.length === 1 ? kinds[0] : kinds
}

const sign_words = [...signature_kinds, 'both'] as const

/** The ids that the path of a signed request can hold (wire 1). */
export function checkUserId(id: string): void {
  if (!/^[1-9][0-9]{0,15}$/.test(id)) throw usageError('a user id is a number of 1 to 16 digits')
}
