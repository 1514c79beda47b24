import './choices-panel.css';
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { WholeChoice } from '../api/whole-choices.ts';
import { Button } from '../controls/button.tsx';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { decimal, jointLogprob } from '../tokens/probability.ts';
import { TokenList } from '../tokens/token-list.tsx';
import { type OfferedChoices, takenOf } from './choices.ts';
import { takeChoice, usePlayground } from './playground-state.ts';

/** The choices of the last request side by side; on a telephone, one after the other. */
export function ChoicesPanel({ offered }: { readonly offered: OfferedChoices }) {
  const state = usePlayground();
  const { choices, content, isRunning } = state;
  const taken = takenOf(offered, content.value.text);
  return (
    <section class="choices framed" aria-labelledby="choices-heading">
      <div class="row">
        <h2 id="choices-heading">Choices</h2>
        <p class="quiet" role="status">
          {taken === null
            ? 'The text has changed. Undo the change to take a choice.'
            : taken.index === null
              ? 'Take one with its button or the keys 1 to 9; with Alt in the text.'
              : `Choice ${taken.index + 1} is in the text.`}
        </p>
        <Button class="plain push" text="Close" onClick={() => (choices.value = null)} />
      </div>
      <ol class="choice-cards">
        {offered.choices.map((choice, index) => (
          <KeptCard
            key={index}
            choice={choice}
            index={index}
            isTaken={taken?.index === index}
            canTake={taken !== null && !isRunning.value && choice.text !== ''}
          />
        ))}
      </ol>
    </section>
  );
}

interface CardProps {
  readonly choice: WholeChoice;
  readonly index: number;
  readonly isTaken: boolean;
  readonly canTake: boolean;
}

/** A card that is as before costs no time. */
const KeptCard = (props: CardProps) =>
  useMemo(() => <ChoiceCard {...props} />, [props.choice, props.isTaken, props.canTake]);

function ChoiceCard({ choice, index, isTaken, canTake }: CardProps) {
  const state = usePlayground();
  const cursor = useSignal<PlacedTokens | null>(null);
  const { text, tokens, finishReason } = choice;
  const sum = tokens.length === 0 ? null : jointLogprob(tokens);
  return (
    <li class={`choice ${isTaken ? 'taken' : ''}`}>
      <div class="token-text choice-text">
        {text === '' && <span class="quiet">{finishReason === null ? 'Waiting …' : 'No text.'}</span>}
        <TokenList content={choice} label={`Tokens of choice ${index + 1}`} cursor={cursor} />
      </div>
      <div class="row figures">
        <Button
          text={isTaken ? `${index + 1} is taken` : `Take ${index + 1}`}
          disabled={!canTake || isTaken}
          onClick={() => takeChoice(state, index)}
        />
        <span class="quiet">
          {tokens.length} tokens
          {sum !== null && ` · log-likelihood ${decimal(sum)}`}
          {finishReason !== null && ` · ${finishReason}`}
        </span>
      </div>
    </li>
  );
}
