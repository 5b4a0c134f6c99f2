/** What the service of the deploy test and its judge share. */

export const conv_id = 'shop'
export const ref_prefix = 'order-'

/** A line of the service: the key of a charge that begins, or is done. */
export interface DeployReport {
  readonly begun?: string
  readonly done?: string
}

export const order = {
  obj_id: conv_id,
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'charge' }] } },
      {
        ...{ id: 'charge', obj_type: 0, title: 'charge' },
        condition: { logics: [{ type: 'api_callback' }, { type: 'go', to_node_id: 'done' }] },
      },
      { id: 'done', obj_type: 2, options: { save_task: true } },
    ],
  },
}
