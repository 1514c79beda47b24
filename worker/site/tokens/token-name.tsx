import { hexBytes, isPartial, tokenBytes } from '../api/token-bytes.ts';

const SIGNS: Readonly<Record<string, string>> = { ' ': '·', '\t': '→', '\n': '↵' };

/** Shows a token's text. Parts of a character show as bytes; with `whiteSpace`, spaces and breaks show as signs. */
export function TokenName({ name, whiteSpace }: { readonly name: string; readonly whiteSpace: boolean }) {
  if (isPartial(name)) return <span class="token-bytes">⟨{hexBytes(tokenBytes(name))}⟩</span>;
  if (!whiteSpace) return <>{name}</>;
  return (
    <>
      {name.split(/([ \t\n])/).map((part, index) => {
        const sign = SIGNS[part];
        if (sign === undefined) return part;
        return (
          <span key={index} class="white-space">
            {sign}
            {part === '\n' && part}
          </span>
        );
      })}
    </>
  );
}
