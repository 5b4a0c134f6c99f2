/**
 * The names of parameters in `params` as paths, written as keys of assignments are: `user.name`,
 * `list[0].id`, and `\.` and `\[` for a dot and a bracket in a name; `list[].pan` is that of each
 * element. A name that is no path is one name as it stands. They hold no templates.
 */

/** A member or an index; null for each element of an array. */
type ParamStep = string | null

export type ParamPath = readonly ParamStep[]

const param_step = /\.((?:[^.[\]\\]|\\.|\\$)+)|\[([^\]]*)\]/gsy

export function readParamPath(name: string): ParamPath {
  if (!/[.[]/.test(name)) return [name]
  const path: ParamStep[] = []
  let read = 0
  for (const [step, key, index] of `.${name}`.matchAll(param_step)) {
    path.push(key === undefined ? index || null : key.replace(/\\(.)/gs, '$1'))
    read += step.length
  }
  return read === name.length + 1 ? path : [name]
}
