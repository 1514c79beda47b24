import { hexBytes, isPartial, tokenBytes } from '../api/token-bytes.ts';
import { IS_UNSEEN, signOf, splitUnseen } from './white-space.ts';

/** Shows a token's text. Parts of a character are bytes; with `whiteSpace`, spaces and breaks are signs. */
export function TokenName({ name, whiteSpace }: { readonly name: string; readonly whiteSpace: boolean }) {
  if (isPartial(name)) return <span class="token-bytes">⟨{hexBytes(tokenBytes(name))}⟩</span>;
  if (!whiteSpace) return <>{name}</>;
  return (
    <>
      {splitUnseen(name).map((part, index) =>
        IS_UNSEEN.test(part) ? (
          <span key={index} class="white-space">
            {signOf(part)}
            {part === '\n' && part}
          </span>
        ) : (
          part
        ),
      )}
    </>
  );
}
