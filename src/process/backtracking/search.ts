/**
 * Runs a program on a text by backtracking. Choices and former register values are on a stack that
 * grows by at most one entry per step; the bound of steps therefore bounds time and memory.
 */
import type { Steps } from '../definition-limits.ts'
import { isKnownCode, unknown_code_steps } from './character-set.ts'
import type { Place } from './parse.ts'
import type { Instruction, Program } from './program.ts'

interface Search {
  readonly text: string
  readonly instructions: readonly Instruction[]
  /** Offsets in the text; -1 where nothing has been kept. */
  readonly registers: number[]
  /**
   * Pairs: an instruction and an offset to go on from, or -1 - register and the value that it had.
   */
  readonly stack: number[]
  steps_left: number
}

/** Whether the pattern is found in the text; undefined where it takes more steps than are left. */
export function search(
  { instructions, registers }: Program,
  text: string,
  steps: Steps,
): boolean | undefined {
  const state: Search = {
    text,
    instructions,
    registers: new Array<number>(registers).fill(-1),
    stack: [],
    steps_left: steps.left,
  }
  const is_found = searched(state)
  steps.left = state.steps_left
  return is_found
}

function searched(state: Search): boolean | undefined {
  const { text, instructions } = state
  const [first] = instructions
  const is_anchored = first?.op === 'place' && first.place === 'text start'
  for (let start = 0; start <= text.length; start += widthAt(text, start)) {
    if (run(state, 0, start) >= 0) return true
    if (state.steps_left < 0) return undefined
    if (is_anchored) return false
  }
  return false
}

/** The offset where the instructions from `from` on are done; -1 where they fail. */
function run(state: Search, from: number, start: number): number {
  const { text, instructions, registers, stack } = state
  const bottom = stack.length
  let next = from
  let at = start
  for (;;) {
    if (--state.steps_left < 0) return -1
    const instruction = instructions[next++] as Instruction
    let is_match = true
    switch (instruction.op) {
      case 'character': {
        const code = text.codePointAt(at)
        is_match = code === instruction.code
        at += widthAt(text, at)
        break
      }
      case 'set': {
        const code = text.codePointAt(at) ?? -1
        if (!isKnownCode(code)) state.steps_left -= unknown_code_steps
        is_match = code !== -1 && instruction.set(code)
        at += widthAt(text, at)
        break
      }
      case 'place':
        is_match = isAt(instruction.place, text, at)
        break
      case 'split':
        stack.push(instruction.second, at)
        next = instruction.first
        break
      case 'jump':
        next = instruction.to
        break
      case 'save':
        keep(state, instruction.register, at)
        break
      case 'close': {
        const { group } = instruction
        keep(state, group + 1, registers[group] as number)
        keep(state, group + 2, at)
        break
      }
      case 'leave empty':
        if (registers[instruction.register] === at) next = instruction.to
        break
      case 'back':
        at = offsetBefore(state, at, instruction.width)
        is_match = at >= 0
        break
      case 'reference': {
        const length = referenceLength(state, at, instruction)
        is_match = length >= 0
        at += length
        break
      }
      case 'done':
        dropChoices(state, bottom)
        return at
      default: {
        const end = run(state, next, at)
        if (state.steps_left < 0) return -1
        // What a look-ahead that must not match has kept is undone with the failure.
        is_match = end >= 0 === (instruction.op !== 'look not')
        next = instruction.next
        if (instruction.op === 'atomic') at = end
      }
    }
    if (is_match) continue
    for (;;) {
      if (stack.length === bottom) return -1
      at = stack.pop() as number
      next = stack.pop() as number
      if (next >= 0) break
      registers[-1 - next] = at
    }
  }
}

function keep({ registers, stack }: Search, register: number, value: number): void {
  stack.push(-1 - register, registers[register] as number)
  registers[register] = value
}

/** Drops the choices above `bottom`, and keeps what undoes the registers. */
function dropChoices(state: Search, bottom: number): void {
  const { stack } = state
  state.steps_left -= (stack.length - bottom) / 8
  let kept = bottom
  for (let entry = bottom; entry < stack.length; entry += 2) {
    const next = stack[entry] as number
    if (next >= 0) continue
    stack[kept++] = next
    stack[kept++] = stack[entry + 1] as number
  }
  stack.length = kept
}

/** The length of what the group matched last, if the text repeats it here; else -1. */
function referenceLength(
  state: Search,
  at: number,
  { group, in_any_case }: Extract<Instruction, { op: 'reference' }>,
): number {
  const { text, registers } = state
  const start = registers[group + 1] as number
  if (start < 0) return -1
  const found = text.slice(start, registers[group + 2])
  state.steps_left -= found.length / 8
  if (text.startsWith(found, at)) return found.length
  if (!in_any_case) return -1
  const here = text.slice(at, at + found.length)
  return here.toLowerCase() === found.toLowerCase() ? found.length : -1
}

/** The offset `width` characters before `at`; -1 where the text has fewer. */
function offsetBefore(state: Search, at: number, width: number): number {
  state.steps_left -= width / 8
  let offset = at
  for (let left = width; left > 0 && offset >= 0; left--) {
    const is_pair = offset > 1 && widthAt(state.text, offset - 2) === 2
    offset -= is_pair ? 2 : 1
  }
  return offset
}

/** Code units of the character at an offset. */
function widthAt(text: string, at: number): number {
  const unit = text.charCodeAt(at)
  if (!(unit >= 0xd800 && unit <= 0xdbff)) return 1
  const second = text.charCodeAt(at + 1)
  return second >= 0xdc00 && second <= 0xdfff ? 2 : 1
}

function isAt(place: Place, text: string, at: number): boolean {
  switch (place) {
    case 'text start':
      return at === 0
    case 'text end':
      return at === text.length
    case 'end':
      return at === text.length || (at === text.length - 1 && text[at] === '\n')
    case 'line start':
      return at === 0 || text[at - 1] === '\n'
    case 'line end':
      return at === text.length || text[at] === '\n'
    case 'edge':
      return isWord(text, at - 1) !== isWord(text, at)
    case 'no edge':
      return isWord(text, at - 1) === isWord(text, at)
  }
}

const word_character = /[0-9A-Za-z_]/

function isWord(text: string, at: number): boolean {
  return word_character.test(text.charAt(at))
}
