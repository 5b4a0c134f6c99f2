/** The table of template functions. A call of a name without a row is text. */
import { conversionFunctions } from './conversion.ts'
import { dateFunction, unixtimeFunction } from './date.ts'
import { digestFunctions } from './digest.ts'
import type { FunctionKind } from './function.ts'
import { filterFunction, mapFunction } from './list.ts'
import { mathFunction, randomFunction } from './math.ts'

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
