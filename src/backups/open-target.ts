/** The target that an operator's text names. */
import type { Chance } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import { folderTarget } from './folder-target.ts'
import type { BackupTarget } from './target.ts'

/** Throws `not_possible` for a text that names no target. */
export function openTarget(text: string, chance: Chance): BackupTarget {
  if (text === '' || /^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    throw fault('not_possible', `${text || 'an empty text'} is no backup target; name a folder`)
  }
  return folderTarget(text, chance)
}
