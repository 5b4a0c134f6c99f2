/**
 * `user bind`, `unbind` and `bindings`: the user that a certificate name acts as. Names include
 * their kind (`dns:`, `cn:` …), so that a host name is never taken for a person. A running server
 * uses the change from the next call on.
 */
import { type Exit, usageError } from '../exit-codes.ts'
import { change, fileVerb, listVerb } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { idJson, jsonOf } from '../output.ts'
import { flag, type Given, isOn, type Verb, word } from '../verb.ts'
import { checkUserId } from './user.ts'

const name_notes = [
  'NAME is the name in the certificate: uri:…, dns:… or cn:… (only if it has no other name),',
  'or sha256: and the 64 hex digits of its fingerprint.',
]

export const bindVerbs: readonly Verb[] = [
  fileVerb('user bind ID|NAME [NAME]', {
    flags: [flag('all', 'let it use every process, as no user')],
    says: 'let a certificate act as a user (bind ID NAME, or bind --all NAME)',
    notes: [...name_notes, 'A name has one binding; a new one takes the place of the old.'],
    run: bind,
  }),
  fileVerb('user unbind NAME', {
    says: 'refuse a certificate from its next call on',
    notes: [
      ...name_notes,
      'What stays is a refusal, also for a name that was never bound: `user unbind sha256:…` shuts',
      'one certificate out. `user bind` lets it in again.',
    ],
    async run(given, io) {
      const name = word(given, 0)
      checkCertificateName(name)
      return change(given, io, 'user.unbind', { name }, bindingOf(name, null))
    },
  }),
  listVerb('user bindings', 'user.bindings', {
    says: 'list the bound certificate names and their users',
    jsonOf: ({ name, acts_as }) => jsonOf(bindingOf(name, acts_as)),
    heads: ['NAME', 'ACTS AS'],
    cellsOf: ({ name, acts_as }) => [name, acts_as ?? 'refused'],
  }),
]

async function bind(given: Given, io: Io): Promise<Exit> {
  const [first = '', second] = given.words
  const all = isOn(given, 'all')
  const name = second ?? first
  if (all !== (second === undefined)) {
    throw usageError('say whom it acts as: `user bind ID NAME`, or `user bind --all NAME`')
  }
  checkCertificateName(name)
  if (all) return change(given, io, 'user.bindAll', { name }, bindingOf(name, 'all'))
  checkUserId(first)
  return change(given, io, 'user.bind', { id: first, name }, bindingOf(name, first))
}

function bindingOf(name: string, acts_as: string | null): { name: string; acts_as: string } {
  return { name: JSON.stringify(name), acts_as: acts_as === null ? 'null' : idJson(acts_as) }
}

/** A name needs its kind: a bare word could be a host, a person or a service. */
function checkCertificateName(name: string): void {
  if (/^(?:uri|dns|cn|sha256):./.test(name)) return
  throw usageError(
    'a certificate name opens with uri:, dns:, cn: or sha256:, such as dns:billing.local',
  )
}
