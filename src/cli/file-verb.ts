/**
 * Verbs on the data file: each makes one call to the engine that holds it, and prints the value as
 * JSON for programs, or as text, a table or nothing for people.
 */
import type { AdminArgs, AdminValue, AdminVerb } from '../server/admin/verbs.ts'
import { withAdmin } from './admin-connection.ts'
import type { Exit } from './exit-codes.ts'
import type { Io } from './io.ts'
import { jsonOf, type ListForm, printDone, printList } from './output.ts'
import { type Flag, file_flags, type Given, type Verb, verbOf } from './verb.ts'

interface FileVerb extends Omit<Verb, 'name' | 'words' | 'flags'> {
  /** Beside --db and --json. */
  readonly flags?: readonly Flag[]
}

export function fileVerb(form: string, { flags = [], ...row }: FileVerb): Verb {
  return verbOf(form, { ...row, flags: [...flags, ...file_flags] })
}

type ItemOf<Call extends AdminVerb> =
  AdminValue<Call> extends readonly (infer Item)[] ? Item : never

/** A verb without words that lists the values of a call without arguments. */
export function listVerb<Call extends AdminVerb>(
  form: string,
  call: Call,
  { says, ...list }: ListForm<ItemOf<Call>> & Pick<Verb, 'says'>,
): Verb {
  return fileVerb(form, {
    says,
    async run(given, io) {
      const items = await ask(given, io, call, {} as AdminArgs<Call>)
      return printList(given, io, items as readonly ItemOf<Call>[], list)
    },
  })
}

export function ask<Call extends AdminVerb>(
  given: Given,
  io: Io,
  call: Call,
  args: AdminArgs<Call>,
): Promise<AdminValue<Call>> {
  return withAdmin(given, io, (admin) => admin.call(call, args))
}

/** Prints nothing for people; for programs what was changed, as members of JSON text. */
export async function change<Call extends AdminVerb>(
  given: Given,
  io: Io,
  call: Call,
  args: AdminArgs<Call>,
  shows: Readonly<Record<string, string>>,
): Promise<Exit> {
  await ask(given, io, call, args)
  return printDone(given, io, jsonOf(shows))
}
