/** Shows a description of the OpenAPI document, whose only markup is inline code. */
export const Description = ({ text }: { readonly text: string }) =>
  text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
