/** View task. */
export function TaskView({ obj_id }: { readonly obj_id: string }) {
  return <h1>{obj_id}</h1>
}
