import type { Usage } from '../api/completion-stream.ts';
import type { Figures, Phase } from './generation.ts';
import { type Score, usePlayground } from './playground-state.ts';

function phaseText(phase: Phase): string {
  switch (phase.name) {
    case 'idle':
      return '';
    case 'waiting':
      return 'Waiting';
    case 'streaming':
      return 'Streaming';
    case 'stopped':
      return 'Stopped';
    case 'failed':
      return 'Failed';
    case 'finished': {
      const stop = phase.stop === null ? '' : ` ${JSON.stringify(phase.stop)}`;
      return `Finished: ${phase.reason}${stop}${phase.isEmpty ? ', the model added no text' : ''}`;
    }
  }
}

const tokensText = (usage: Usage | null, tokens: number): string =>
  usage === null
    ? `${tokens} tokens`
    : `${usage.promptTokens} + ${usage.completionTokens} tokens (${usage.cachedTokens} cached)`;

function figuresOf({ firstTokenMs, tokensPerSecond, tokens, usage, limits }: Figures): string[] {
  const requests = limits?.requests;
  return [
    firstTokenMs === null ? '' : `TTFT ${Math.round(firstTokenMs)} ms`,
    tokensPerSecond === null || tokens < 2 ? '' : `${Math.round(tokensPerSecond)} tokens/s`,
    tokens === 0 && usage === null ? '' : tokensText(usage, tokens),
    requests ? `limit ${requests.left}/${requests.of}` : '',
  ].filter((figure) => figure !== '');
}

const scoreOf = (score: Score | null): string[] =>
  score === null ? [] : [`Perplexity ${score.perplexity.toFixed(2)} over ${score.tokens} tokens`];

/** Returns the state of a completion, then its figures. */
export const statusTexts = (phase: Phase, figures: Figures, score: Score | null): [string, ...string[]] => [
  phaseText(phase),
  ...scoreOf(score),
  ...figuresOf(figures),
];

/** What the last completion did, and what it cost. */
export function StatusLine() {
  const { generation, score } = usePlayground();
  const [phase, ...figures] = statusTexts(generation.phase.value, generation.figures.value, score.value);
  return (
    <p class="status-line figures quiet">
      <span role="status">{phase}</span>
      {figures.map((figure) => (
        <span key={figure.replace(/[\d.]+/g, '')}>{figure}</span>
      ))}
    </p>
  );
}
