/**
 * `user bind`, `unbind` and `bindings`: which names of certificates act as whom. A name is typed,
 * as the engine keeps it, so that the word for a host never stands for a person. A running server
 * sees the change at the next call.
 */

import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usage } from '../exit-codes.ts'
import { type Io, print } from '../io.ts'
import { idJson, jsonOf, printJson, printLines } from '../output.ts'
import { table } from '../table.ts'
import { db_flag, type Given, isOn, json_flag, type Verb, word } from '../verb.ts'
import { demandUserId } from './user.ts'

const flags = [db_flag, json_flag]

const name_notes = [
  'NAME is what stands in the certificate: uri:…, dns:… or cn:… (only where it has no other name),',
  'or sha256: and the 64 hex digits of its fingerprint.',
]

export const bindVerbs: readonly Verb[] = [
  {
    name: 'user bind',
    words: [{ name: 'ID|NAME' }, { name: 'NAME', optional: true }],
    flags: [{ name: 'all', says: 'let it use every process, as no user' }, ...flags],
    says: 'let a certificate act as a user (bind ID NAME, or bind --all NAME)',
    notes: [...name_notes, 'A name has one binding; a new one takes the place of the old.'],
    run: bind,
  },
  {
    name: 'user unbind',
    words: [{ name: 'NAME' }],
    flags,
    says: 'refuse a certificate from its next call on',
    notes: [
      ...name_notes,
      'What stays is a refusal, also for a name that was never bound: `user unbind sha256:…` shuts',
      'one certificate out. `user bind` lets it in again.',
    ],
    async run(given, io) {
      const name = word(given, 0)
      demandName(name)
      await withAdmin(given, io, (admin) => admin.call('user.unbind', { name }))
      return toldBinding(given, io, name, null)
    },
  },
  {
    name: 'user bindings',
    words: [],
    flags,
    says: 'list the bound certificate names and whom they act as',
    async run(given, io) {
      const bindings = await withAdmin(given, io, (admin) => admin.call('user.bindings', {}))
      if (isOn(given, 'json')) {
        await printLines(
          io,
          bindings.map(({ name, acts_as }) => bindingJson(name, acts_as)),
        )
        return exits.done
      }
      const rows = bindings.map(({ name, acts_as }) => [name, acts_as ?? 'refused'])
      await print(io.stdout, table(['NAME', 'ACTS AS'], rows))
      return exits.done
    },
  },
]

async function bind(given: Given, io: Io): Promise<Exit> {
  const [first = '', second] = given.words
  const all = isOn(given, 'all')
  const name = second ?? first
  if (all !== (second === undefined)) {
    throw usage('say whom it acts as: `user bind ID NAME`, or `user bind --all NAME`')
  }
  demandName(name)
  if (all) {
    await withAdmin(given, io, (admin) => admin.call('user.bindAll', { name }))
    return toldBinding(given, io, name, 'all')
  }
  demandUserId(first)
  await withAdmin(given, io, (admin) => admin.call('user.bind', { id: first, name }))
  return toldBinding(given, io, name, first)
}

async function toldBinding(
  given: Given,
  io: Io,
  name: string,
  acts_as: string | null,
): Promise<Exit> {
  if (isOn(given, 'json')) await printJson(io, bindingJson(name, acts_as))
  return exits.done
}

function bindingJson(name: string, acts_as: string | null): string {
  const who = acts_as === null ? 'null' : idJson(acts_as)
  return jsonOf({ name: JSON.stringify(name), acts_as: who })
}

/** The kind must be said: a bare word could be a host, a person or a service. */
function demandName(name: string): void {
  if (/^(?:uri|dns|cn|sha256):./.test(name)) return
  throw usage('a certificate name opens with uri:, dns:, cn: or sha256:, such as dns:billing.local')
}
