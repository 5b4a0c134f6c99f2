/**
 * What changed between two definitions of a process, node by node: as lines of their JSON, indented
 * and with its members in order, so that only what means something else differs.
 */
import { diffArrays } from 'diff'
import { indentedJson, isObject, parseStored } from '../../../codec/json.ts'
import type { JsonObject, JsonValue } from '../../../core/model.ts'
import type { NodeChange, VersionChanges } from '../messages.ts'

/** Changed lines of one node; a node that differs in more is shown whole. */
const edits_max = 1_000

export function versionChanges(
  from_text: string,
  to_text: string,
): Pick<VersionChanges, 'nodes' | 'lines'> {
  const [from, to] = [partsOf(from_text), partsOf(to_text)]
  const nodes = [...new Set([...to.nodes.keys(), ...from.nodes.keys()])].flatMap((node_id) =>
    nodeChange(node_id, from.nodes.get(node_id), to.nodes.get(node_id)),
  )
  return { nodes, lines: linesThatDiffer(linesOf(from.rest), linesOf(to.rest)) }
}

interface Parts {
  readonly nodes: ReadonlyMap<string, JsonObject>
  /** The definition without its nodes. */
  readonly rest: JsonObject
}

function partsOf(definition_text: string): Parts {
  const { scheme, ...rest } = parseStored(definition_text) as JsonObject
  const { nodes = [], ...scheme_rest } = isObject(scheme) ? scheme : {}
  const list = Array.isArray(nodes) ? nodes.filter(isObject) : []
  return {
    nodes: new Map(list.map((node) => [String(node.id), node])),
    rest: { ...rest, scheme: scheme_rest },
  }
}

function nodeChange(
  node_id: string,
  from: JsonObject | undefined,
  to: JsonObject | undefined,
): NodeChange[] {
  const lines = linesThatDiffer(linesOf(from), linesOf(to))
  if (lines.length === 0) return []
  const title = (to ?? from)?.title
  return [
    {
      node_id,
      title: typeof title === 'string' ? title : '',
      change:
        from === undefined
          ? 'added'
          : to === undefined
            ? 'removed'
            : textOf(withoutPlace(from)) === textOf(withoutPlace(to))
              ? 'moved_only'
              : 'changed',
      lines,
    },
  ]
}

const withoutPlace = ({ x: _x, y: _y, ...node }: JsonObject): JsonObject => node

const textOf = (value: JsonValue): string => indentedJson(inOrder(value))

function linesOf(value: JsonValue | undefined): string[] {
  return value === undefined ? [] : textOf(value).split('\n')
}

function inOrder(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inOrder)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, inOrder(value[name] as JsonValue)]))
}

function linesThatDiffer(from: readonly string[], to: readonly string[]): string[] {
  const parts = diffArrays([...from], [...to], { maxEditLength: edits_max })
  if (parts === undefined) return [...marked('-', from), ...marked('+', to)]
  return parts.flatMap(({ added, removed, value }) => {
    if (removed) return marked('-', value)
    return added ? marked('+', value) : []
  })
}

function marked(mark: string, lines: readonly string[]): string[] {
  return lines.map((line) => `${mark} ${line}`)
}
