/** View process. */
export function ProcessView({ conv_id }: { readonly conv_id: string }) {
  return <h1>{conv_id}</h1>
}
