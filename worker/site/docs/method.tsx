/** The HTTP method of an operation. */
export const Method = ({ name }: { readonly name: string }) => (
  <span class={`method method-${name.toLowerCase()}`}>{name}</span>
);
