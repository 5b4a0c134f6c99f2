/**
 * Keeps a parameter that is shown masked from being written back as it was shown: whoever edits the
 * data of a task has the mask in front of him.
 */
import { parseJson } from '../../../codec/json.ts'
import { isFault } from '../../../core/faults.ts'
import type { JsonValue } from '../../../core/model.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { quoted } from '../../../process/report.ts'
import { isMasked, maskedPaths } from '../../../server/admin/task-verbs.ts'
import { processOf } from './task.ts'

/**
 * A sentence on the first masked parameter in the data; undefined without one, and for a text that
 * is no JSON. Without a process, of any.
 */
export async function maskWritten(
  engine: ServedEngine,
  conv_id: string | undefined,
  data_text: string,
): Promise<string | undefined> {
  const data = dataOf(data_text, engine.limits.nesting_max)
  if (data === undefined || !holdsMask(data)) return undefined
  const conv_ids =
    conv_id === undefined
      ? (await engine.processes.list()).map((process) => process.conv_id)
      : [conv_id]
  for (const one of conv_ids) {
    const { definition_text = '{}' } = (await processOf(engine, one)) ?? {}
    const path = maskedPaths(definition_text).find((path) => isMasked(data, path))
    if (path === undefined) continue
    const name = quoted(path.map((step) => step ?? '[]').join('.'))
    return `${name} is hidden, and "***" is not its value: leave it out, or give it a new one`
  }
  return undefined
}

function dataOf(text: string, nesting_max: number): JsonValue | undefined {
  try {
    return parseJson(text, { nesting_max, values_max: Number.MAX_SAFE_INTEGER })
  } catch (error) {
    if (isFault(error)) return undefined
    throw error
  }
}

/** Whether a text in the value is a mask, anywhere: seldom, so definitions are seldom read. */
function holdsMask(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.some(holdsMask)
  if (typeof value === 'object' && value !== null) return Object.values(value).some(holdsMask)
  return value === '***'
}
