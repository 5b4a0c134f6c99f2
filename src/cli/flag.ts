/** The flags and words of verbs, in the form in which the help shows them. */
import { defined } from '../core/defined.ts'

export interface Flag {
  /** Without dashes. Its environment variable: `--secret-file` is CONVEYOR_SECRET_FILE. */
  readonly name: string
  /** The placeholder in the help, such as `FILE`. A flag without one is a switch. */
  readonly value?: string
  readonly says: string
  /** May be repeated; has no environment variable. */
  readonly many?: true
  /** Has no environment variable. */
  readonly no_env?: true
}

export interface Word {
  readonly name: string
  readonly optional?: true
  /** May be repeated; only the last word. */
  readonly many?: true
}

/** A flag by its name and, unless it is a switch, its placeholder: `flag('tls DIR', …)`. */
export function flag(form: string, says: string, more: Pick<Flag, 'many' | 'no_env'> = {}): Flag {
  const [name = '', value] = form.split(' ')
  return { name, ...defined({ value }), says, ...more }
}

/** Words as the help shows them: `ID [NAME]`, `FILE…`. */
export function words(forms: string): Word[] {
  return forms.split(' ').map((form) => {
    const [, optional, name = '', many] = /^(\[)?([^\]…]+)\]?(…)?$/.exec(form) ?? []
    return { name, ...(optional && { optional: true }), ...(many && { many: true }) }
  })
}

export const db_flag = flag('db FILE', 'the data file (default ./conveyor.lmdb)')
export const json_flag = flag('json', 'print JSON, for programs')

/** Of a verb that needs nothing but the data file. */
export const file_flags: readonly Flag[] = [db_flag, json_flag]
