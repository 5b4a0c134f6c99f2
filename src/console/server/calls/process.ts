/**
 * The calls that show a process: one version of it, drawn and as text, and two versions side by
 * side; and its definition as the file that an import takes.
 */
import { indentedJson, parseStored } from '../../../codec/json.ts'
import type { ServedEngine } from '../../../engine/served-engine.ts'
import { type CallRow, countOf, flagOf, idOf, inputOf, optional } from './call.ts'
import { versionChanges } from './version-changes.ts'

/** How long a page waits for its graph before it shows the rest. */
const first_drawing_ms_max = 150

export const process: CallRow<'process'> = {
  right: 'look',
  async run({ engine, drawings }, given) {
    const input = inputOf(given, ['conv_id', 'version', 'laid_out', 'waits'])
    const conv_id = idOf('conv_id', input.conv_id)
    const laid_out = flagOf('laid_out', input.laid_out)
    const drawing_ms_max = flagOf('waits', input.waits) ? Infinity : first_drawing_ms_max
    const { version: wanted } = optional('version', input.version, countOf)
    const { processes } = engine
    const [present, versions, aliases] = await Promise.all([
      processes.show(conv_id),
      processes.versions(conv_id),
      processes.aliases(),
    ])
    const { title, status, version } = present
    const shown = wanted === undefined ? present : await processes.show(conv_id, wanted)
    return {
      row: { conv_id, title, status, version },
      version: shown.version,
      ...(await drawings.drawingWithin(drawing_ms_max, shown, { laid_out })),
      definition_text: indented(shown.definition_text),
      versions,
      aliases: aliases.filter((alias) => alias.conv_id === conv_id).map(({ name }) => name),
    }
  },
}

export const versions: CallRow<'versions'> = {
  right: 'look',
  async run({ engine, drawings }, given) {
    const input = inputOf(given, ['conv_id', 'from', 'to'])
    const conv_id = idOf('conv_id', input.conv_id)
    const [from, to] = await Promise.all([
      engine.processes.show(conv_id, countOf('from', input.from)),
      engine.processes.show(conv_id, countOf('to', input.to)),
    ])
    const changes = versionChanges(from.definition_text, to.definition_text)
    return { ...(await drawings.comparedOf(from, to)), ...changes }
  },
}

/** As it is stored, which is as it was given: an import of it changes nothing. */
export async function exportOf(
  engine: ServedEngine,
  given: string | null,
): Promise<{ readonly name: string; readonly text: string }> {
  const conv_id = idOf('conv_id', given)
  const { definition_text } = await engine.processes.show(conv_id)
  const name = `process-${conv_id.replaceAll(/[^\w.-]/g, '_')}.json`
  return { name, text: `${indented(definition_text)}\n` }
}

const indented = (text: string): string => indentedJson(parseStored(text))
