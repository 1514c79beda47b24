import { requireOption, withExamples } from '@continuo/origin/terminal/program.ts';
import { type Command, InvalidArgumentError } from 'commander';
import { type Filter, instant, queryOf } from './options.ts';
import type { OpenSession } from './session.ts';

/** Money is in micro-units of the currency, and factors are in thousandths, so that nothing is rounded. */
function whole(text: string): number {
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a whole number.');
}

const PRICE_COLUMNS = [
  ...['id', 'model', 'prompt_micros', 'cached_prompt_micros', 'completion_micros'],
  ...['flex_permille', 'batch_permille', 'valid_from'],
];

interface PriceOptions {
  readonly model: string;
  readonly prompt: number;
  readonly cachedPrompt?: number;
  readonly completion: number;
  readonly flex?: number;
  readonly batch?: number;
  readonly from?: number;
}

export function addPriceCommands(program: Command, open: OpenSession): void {
  const prices = program.command('prices').description('manage the prices of models');
  const list = prices
    .command('list')
    .description('list all prices, also past and future ones')
    .option('--model <id>', 'only of this model');
  withExamples(list, 'continuo prices list --model org/model').action((filter: Filter) =>
    open().list(`/admin/v1/prices${queryOf(filter)}`, PRICE_COLUMNS),
  );
  const set = prices.command('set').description('set the price of a model from a time on');
  requireOption(set, '--model <id>', 'id of the model, not an alias');
  requireOption(set, '--prompt <micros>', 'micro-units per million prompt tokens', whole);
  requireOption(set, '--completion <micros>', 'micro-units per million completion tokens', whole);
  withExamples(
    set
      .option('--cached-prompt <micros>', 'per million cached prompt tokens; default: as --prompt', whole)
      .option('--flex <permille>', 'factor of service_tier flex in thousandths; default: 1000', whole)
      .option('--batch <permille>', 'factor of batches in thousandths; default: 1000', whole)
      .option('--from <time>', 'for example 2030-01-31; default: now', instant),
    'continuo prices set --model org/model --prompt 500000 --completion 1500000 --batch 500',
  ).action(({ model, prompt, cachedPrompt, completion, flex, batch, from }: PriceOptions) => {
    const body = {
      model,
      prompt_micros: prompt,
      cached_prompt_micros: cachedPrompt,
      completion_micros: completion,
      flex_permille: flex,
      batch_permille: batch,
      valid_from: from,
    };
    return open().request('POST', '/admin/v1/prices', body);
  });
}

const CREDIT_COLUMNS = ['id', 'tenant', 'micros', 'note', 'created_at'];

export function addCreditCommands(program: Command, open: OpenSession): void {
  const credits = program.command('credits').description('manage prepaid balances of tenants');
  const list = credits.command('list').description('list the entries of a balance');
  requireOption(list, '--tenant <id>', 'tenant with the balance');
  withExamples(list, 'continuo credits list --tenant acme').action((filter: Filter) =>
    open().list(`/admin/v1/credits${queryOf(filter)}`, CREDIT_COLUMNS),
  );
  const add = credits.command('add').description('add to a balance, which begins with its first entry');
  requireOption(add, '--tenant <id>', 'tenant with the balance');
  requireOption(add, '--id <id>', 'unique, for example the number of a payment: it counts once');
  requireOption(add, '--micros <number>', 'micro-units of the currency; negative for a correction', whole);
  withExamples(
    add.option('--note <text>', 'text for people'),
    'continuo credits add --tenant acme --id invoice-17 --micros 50000000',
  ).action((options: object) => open().request('POST', '/admin/v1/credits', options));
}
