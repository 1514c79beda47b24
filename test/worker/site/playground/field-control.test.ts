import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { h } from 'preact';
import { expect, test } from 'vitest';
import type { RequestField } from '../../../../worker/site/api/request-field.ts';
import { FieldControl } from '../../../../worker/site/playground/field-control.tsx';
import { waitFor } from '../../../support/wait-for.ts';
import { rendered } from '../support/rendered.ts';

const TEMPERATURE = { kind: 'number', description: 'Heat.', minimum: 0, maximum: 2 } as RequestField;
const LOGPROBS = { kind: 'integer', description: 'Alternatives.', minimum: 0, maximum: 5 } as RequestField;

function opened(name: string, field: RequestField, first?: unknown) {
  const value = signal<unknown>(first);
  const Shown = () =>
    h(FieldControl, { name, field, value: value.value, onChange: (next) => (value.value = next) });
  const page = rendered(h(Shown, {}));
  return { value, page, written: () => page.all('input')[0]!.value };
}

test('what a visitor writes stays as it is until the field is left', async () => {
  const { value, page, written } = opened('temperature', TEMPERATURE, 0.8);
  page.write('temperature', '0.');
  await waitFor(() => expect(value.value).toBe(0));
  expect(written()).toBe('0.');
  page.leave();
  await waitFor(() => expect(written()).toBe('0'));
});

test('a preset takes the place of what a slider or a faulty number shows', async () => {
  const { value, page, written } = opened('temperature', TEMPERATURE, 0.8);
  const [, slider] = page.all('input');
  slider!.value = '0.81';
  slider!.dispatch('input');
  await waitFor(() => expect([value.value, written()]).toEqual([0.81, '0.81']));
  value.value = 0;
  await waitFor(() => expect(written()).toBe('0'));
  page.write('temperature', '0.9x');
  await waitFor(() => expect(page.text()).toContain('0.9x is not a number.'));
  expect(value.value).toBe(0);
  page.leave();
  expect(written()).toBe('0.9x');
  value.value = 0.8;
  await waitFor(() => expect(written()).toBe('0.8'));
  expect(page.text()).not.toContain('not a number');
});

test('more than a field allows is refused with what it allows, which a button uses', async () => {
  const { value, page, written } = opened('logprobs', LOGPROBS);
  page.write('logprobs', '200');
  await waitFor(() => expect(page.text()).toContain('At most 5'));
  expect(value.value).toBeUndefined();
  page.press('Use 5');
  await waitFor(() => expect([value.value, written()]).toEqual([5, '5']));
});
