/** What an operator does to one task. A refused op is thrown, with its code and its sentence. */
import type { ActionOutcome, NamedTask } from '../../server/messages.ts'

export async function done(acting: Promise<ActionOutcome>): Promise<void> {
  const { proc, description = proc } = await acting
  if (proc !== 'ok') throw Object.assign(new Error(description), { code: proc })
}

export function idsOf({ conv_id, obj_id }: NamedTask): NamedTask {
  return { conv_id, obj_id }
}
