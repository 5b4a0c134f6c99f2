/** The process whose tasks are lists: a create gives the first value, each modify appends one. */

export const list_id = 'lists'

const node = (id: string, obj_type: number, logics: readonly object[]): object => ({
  ...{ id, obj_type, title: id, condition: { logics, semaphors: [] } },
})

export const list_process = {
  ...{ obj_type: 1, obj_id: list_id, title: 'Lists', conv_type: 'process', status: 'active' },
  params: [],
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'append' }]),
      node('append', 0, [
        { type: 'set_param', extra: { list: '{{list}} {{value}}' } },
        { type: 'go', to_node_id: 'wait' },
      ]),
    ],
  },
}

export const firstData = (value: string): object => ({ list: value })
export const nextData = (value: string): object => ({ value })

export function valuesOf(task: { readonly data: unknown } | undefined): string[] {
  const { list } = (task?.data ?? {}) as { list?: string }
  return list === undefined ? [] : list.split(' ')
}
