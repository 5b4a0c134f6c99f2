/**
 * Compiles the tree of a pattern to instructions. Counted repeats are unrolled, so the bounded
 * length of a program bounds its memory. Each alternative of a look-behind has a fixed width.
 */
import { fault } from '../../core/faults.ts'
import { pattern_program_max } from '../definition-limits.ts'
import type { CharacterSet } from './character-set.ts'
import { mistake, type ParsedPattern, type PatternNode, type Place } from './parse.ts'

export type Instruction =
  | { readonly op: 'character'; readonly code: number }
  | { readonly op: 'set'; readonly set: CharacterSet }
  | { readonly op: 'place'; readonly place: Place }
  /** Goes on at `first`; if that fails, at `second`. */
  | { readonly op: 'split'; first: number; second: number }
  | { readonly op: 'jump'; to: number }
  /** Keeps the place in a register. */
  | { readonly op: 'save'; readonly register: number }
  /** Keeps the place of `group` as the start of the group, and this one as its end. */
  | { readonly op: 'close'; readonly group: number }
  /** Leaves a loop whose last round, which began at the place in the register, was empty. */
  | { readonly op: 'leave empty'; readonly register: number; to: number }
  /** Steps back by a number of characters. */
  | { readonly op: 'back'; readonly width: number }
  | { readonly op: 'reference'; readonly group: number; readonly in_any_case: boolean }
  /** Runs what follows up to its `done`, then goes on at `next`. */
  | { readonly op: 'atomic' | 'look' | 'look not'; next: number }
  | { readonly op: 'done' }

export interface Program {
  readonly instructions: readonly Instruction[]
  /** Three for each group, the last two of them its start and end; one for each loop. */
  readonly registers: number
}

interface Writer {
  readonly groups: ReadonlyMap<string, number>
  readonly instructions: Instruction[]
  registers: number
}

export function compileProgram({ tree, groups }: ParsedPattern): Program {
  const registers = 3 * new Set(groups.values()).size
  const writer: Writer = { groups, instructions: [], registers }
  write(writer, tree)
  add(writer, { op: 'done' })
  return { instructions: writer.instructions, registers: writer.registers }
}

function add<Added extends Instruction>(writer: Writer, instruction: Added): Added {
  if (writer.instructions.length >= pattern_program_max) {
    throw fault('bad_definition', 'it repeats too much')
  }
  writer.instructions.push(instruction)
  return instruction
}

function write(writer: Writer, node: PatternNode): void {
  switch (node.kind) {
    case 'character':
      add(writer, { op: 'character', code: node.code })
      return
    case 'set':
      add(writer, { op: 'set', set: node.set })
      return
    case 'place':
      add(writer, { op: 'place', place: node.place })
      return
    case 'sequence':
      for (const part of node.parts) write(writer, part)
      return
    case 'either':
      writeEither(writer, node.parts, write)
      return
    case 'repeat':
      writeRepeat(writer, node)
      return
    case 'group':
      add(writer, { op: 'save', register: groupAt(node.number) })
      write(writer, node.of)
      add(writer, { op: 'close', group: groupAt(node.number) })
      return
    case 'reference': {
      const number = writer.groups.get(node.to)
      if (number === undefined) throw mistake(node, `there is no group ${node.to}`)
      const { in_any_case } = node
      add(writer, { op: 'reference', group: groupAt(number), in_any_case })
      return
    }
    case 'atomic':
      writeInner(writer, 'atomic', () => write(writer, node.of))
      return
    case 'look':
      writeInner(writer, node.is_negative ? 'look not' : 'look', () => {
        if (node.is_behind) writeBehind(writer, node)
        else write(writer, node.of)
      })
      return
  }
}

/** The first register of a group. */
function groupAt(number: number): number {
  return 3 * (number - 1)
}

function writeInner(writer: Writer, op: 'atomic' | 'look' | 'look not', body: () => void): void {
  const opening = add(writer, { op, next: 0 })
  body()
  add(writer, { op: 'done' })
  opening.next = writer.instructions.length
}

function writeEither(
  writer: Writer,
  parts: readonly PatternNode[],
  writePart: (writer: Writer, part: PatternNode) => void,
): void {
  const { instructions } = writer
  const jumps: { to: number }[] = []
  for (const [at, part] of parts.entries()) {
    const is_last = at === parts.length - 1
    const split = is_last ? undefined : add(writer, { op: 'split', first: 0, second: 0 })
    if (split !== undefined) split.first = instructions.length
    writePart(writer, part)
    if (split === undefined) break
    jumps.push(add(writer, { op: 'jump', to: 0 }))
    split.second = instructions.length
  }
  for (const jump of jumps) jump.to = instructions.length
}

function writeBehind(
  writer: Writer,
  { of, at }: Extract<PatternNode, { readonly kind: 'look' }>,
): void {
  writeEither(writer, of.kind === 'either' ? of.parts : [of], (_writer, part) => {
    const width = widthOf(part)
    if (width === undefined) throw mistake({ at }, 'a look-behind has no fixed length')
    add(writer, { op: 'back', width })
    write(writer, part)
  })
}

function writeRepeat(
  writer: Writer,
  { of, min, max, is_greedy }: Extract<PatternNode, { readonly kind: 'repeat' }>,
): void {
  const { instructions } = writer
  for (let round = 0; round < min; round++) write(writer, of)
  const splits: Extract<Instruction, { op: 'split' }>[] = []
  const addSplit = (): void => {
    const split = add(writer, { op: 'split', first: 0, second: 0 })
    split[is_greedy ? 'first' : 'second'] = instructions.length
    splits.push(split)
  }
  if (max === Infinity) {
    const to = instructions.length
    const register = canBeEmpty(of) ? writer.registers++ : undefined
    addSplit()
    if (register !== undefined) add(writer, { op: 'save', register })
    write(writer, of)
    const leave =
      register === undefined ? undefined : add(writer, { op: 'leave empty', register, to: 0 })
    add(writer, { op: 'jump', to })
    if (leave !== undefined) leave.to = instructions.length
  } else {
    for (let round = min; round < max; round++) {
      addSplit()
      write(writer, of)
    }
  }
  for (const split of splits) split[is_greedy ? 'second' : 'first'] = instructions.length
}

/** Characters that the node matches; undefined where their number is not fixed. */
function widthOf(node: PatternNode): number | undefined {
  switch (node.kind) {
    case 'character':
    case 'set':
      return 1
    case 'place':
    case 'look':
      return 0
    case 'group':
    case 'atomic':
      return widthOf(node.of)
    case 'reference':
      return undefined
    case 'repeat': {
      const width = widthOf(node.of)
      return width === undefined || node.min !== node.max ? undefined : width * node.min
    }
    case 'either': {
      const widths = new Set(node.parts.map(widthOf))
      return widths.size === 1 ? [...widths][0] : undefined
    }
    case 'sequence': {
      let sum = 0
      for (const part of node.parts) sum += widthOf(part) ?? Number.NaN
      return Number.isNaN(sum) ? undefined : sum
    }
  }
}

function canBeEmpty(node: PatternNode): boolean {
  switch (node.kind) {
    case 'character':
    case 'set':
      return false
    case 'sequence':
      return node.parts.every(canBeEmpty)
    case 'either':
      return node.parts.some(canBeEmpty)
    case 'group':
    case 'atomic':
      return canBeEmpty(node.of)
    case 'repeat':
      return node.min === 0 || canBeEmpty(node.of)
    default:
      return true
  }
}
