/**
 * The table of functions that templates may call. A new function is a file beside this one and a
 * row here; a call of a name without a row is text.
 */
import { conversionFunctions } from './conversion.ts'
import { dateFunction, unixtimeFunction } from './date.ts'
import { digestFunctions } from './digest.ts'
import type { FunctionKind } from './function.ts'
import { filterFunction, mapFunction } from './list.ts'
import { mathFunction } from './math.ts'
import { randomFunction } from './random.ts'

export const functionTable: readonly FunctionKind[] = [
  mathFunction,
  randomFunction,
  unixtimeFunction,
  dateFunction,
  ...digestFunctions,
  ...conversionFunctions,
  mapFunction,
  filterFunction,
]
