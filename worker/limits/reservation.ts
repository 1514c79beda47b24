import type { Usage } from '@continuo/shared/generation.ts';
import { eachOf, type Spend } from './quota/budget.ts';
import { affordable, costOf, type Price } from './usage/price.ts';
import { spendOf } from './usage/usage-record.ts';

/** Tokens of the first part of a completion. */
export const FIRST_PART = 256;

/** What a request may cost, estimated before it is tokenized. */
export interface RequestCost {
  /** Tokens to reserve before it runs: the prompt, and the first part of the completion. */
  readonly tokens: number;
  /** Prompt tokens plus the maximum number of generated tokens. */
  readonly most: number;
  /** Those of the prompt. */
  readonly prompt: number;
  /** The model's id, not an alias. Usage is counted under it. */
  readonly model: string;
  /** Null = the tokens cost nothing. */
  readonly price: Price | null;
}

/** The tokens of a request. */
export type RequestTokens = Omit<RequestCost, 'model' | 'price'>;

/** The next part is reserved when fewer tokens are left. It may take a round trip to the object. */
const AHEAD = FIRST_PART / 2;
/** Further parts are as large as what was used, up to this. */
const MAX_PART = 1_024;

type Priced = Pick<RequestCost, 'prompt' | 'price'>;

/** Returns a number of tokens, the prompt's included, with the most that they cost. */
export const spendFor = ({ prompt, price }: Priced, tokens: number, cachedTokens = 0): Spend => {
  const usage = { promptTokens: prompt, cachedTokens, completionTokens: Math.max(0, tokens - prompt) };
  return { tokens, money: costOf(price, usage) };
};

/** What a running request has taken from its budgets, and the tokens that this suffices for. */
export class Reservation {
  /** Unique. The upstream keeps its usage account of the request under this id. */
  readonly id: string;
  #cost: Priced & Pick<RequestCost, 'most'>;
  #cachedTokens = 0;
  #spend: Spend;
  #usable = 0;

  constructor(id: string, spend: Spend, cost: RequestCost) {
    this.id = id;
    this.#cost = cost;
    this.#spend = spend;
    this.raise(spend);
  }

  get spend(): Spend {
    return this.#spend;
  }

  /** Tokens that the reserved tokens and the reserved money suffice for. */
  get usable(): number {
    return this.#usable;
  }

  /** At least so much is reserved. */
  raise(spend: Spend): void {
    this.#spend = eachOf((name) => Math.max(this.#spend[name], spend[name]));
    const { tokens, money } = this.#spend;
    const prompt = { promptTokens: this.#cost.prompt, cachedTokens: this.#cachedTokens };
    this.#usable = Math.min(tokens, affordable(this.#cost.price, money, prompt));
  }

  add(spend: Spend): void {
    this.raise(eachOf((name) => this.#spend[name] + spend[name]));
  }

  /** The prompts have been counted. Returns what they need, with the first part of the completion. */
  counted(counted: RequestTokens): Spend {
    this.#cost = { ...counted, price: this.#cost.price };
    return spendFor(this.#cost, counted.tokens);
  }

  /** So many prompt tokens were in the prefix cache: what they save pays for others. */
  cached(tokens: number): void {
    const cachedTokens = Math.min(tokens, this.#cost.prompt);
    if (cachedTokens === this.#cachedTokens) return;
    this.#cachedTokens = cachedTokens;
    this.raise(this.#spend);
  }

  /** Returns whether the request may use so many tokens. Other servers' estimates may exceed the maximum. */
  covers(tokens: number): boolean {
    return Math.min(tokens, this.#cost.most) <= this.#usable;
  }

  /** Returns whether to reserve the next part soon. */
  isLow(tokens: number): boolean {
    return !this.covers(tokens + AHEAD);
  }

  /** Returns the total with the next part. */
  withNextPart(used: number): Spend {
    const part = Math.min(MAX_PART, Math.max(FIRST_PART, used));
    return spendFor(this.#cost, Math.min(this.#cost.most, this.#usable + part), this.#cachedTokens);
  }

  /** Returns what is missing to a total. */
  missing(total: Spend): Spend {
    return eachOf((name) => Math.max(0, total[name] - this.#spend[name]));
  }

  /** Returns what is left of it after a usage; negative if the usage was more. */
  unused(usage: Usage): Spend {
    const spent = spendOf(this.#cost.price, usage);
    return eachOf((name) => this.#spend[name] - spent[name]);
  }
}
