/**
 * How a logic, a key or an op names a process by an alias: `@name`, or the stage before the name,
 * between them a NUL, which no name has. An op has the NUL also without a stage: its `conv_id` as
 * callers send it is never an alias.
 */

/** A name in a stage: of an alias, as of a variable. `stage` is an id, or `project/stage` names. */
export function inStage(name: string, stage: string | undefined): string {
  return stage === undefined ? name : `${stage}\0${name}`
}

/** The parts that `inStage` has joined. */
export function partsOf(staged: string): { readonly name: string; readonly stage?: string } {
  const at = staged.indexOf('\0')
  if (at <= 0) return { name: staged.slice(at + 1) }
  return { stage: staged.slice(0, at), name: staged.slice(at + 1) }
}

/** The alias of an op in the place of its `conv_id`. */
export function aliasIdOf(name: string, stage = ''): string {
  return `@${inStage(name, stage)}`
}

export function isAliasId(conv_id: string): boolean {
  return conv_id.startsWith('@') && conv_id.includes('\0')
}

/** As people read it: an id without the stage. */
export function shownConvId(conv_id: string): string {
  return isAliasId(conv_id) ? `@${partsOf(conv_id.slice(1)).name}` : conv_id
}
