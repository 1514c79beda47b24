/** Why something was refused; null or '' = it was not. */
export const Fault = ({ text }: { readonly text: string | null | undefined }) =>
  text ? (
    <p class="error-text" role="alert">
      {text}
    </p>
  ) : null;
