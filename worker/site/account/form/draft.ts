import { type ReadonlySignal, useSignal } from '@preact/signals';

/** What the fields of a form have. */
export interface Draft<T> {
  readonly values: ReadonlySignal<T>;
  /** Returns the value of a field, and what takes its changes. */
  bind<Name extends keyof T>(
    name: Name,
  ): { readonly value: T[Name]; readonly onInput: (value: T[Name]) => void };
  /** As `bind`, for a field of many values by name. */
  bindEach<Name extends keyof T>(
    name: Name,
  ): { readonly value: T[Name]; readonly onInput: (key: string, text: string) => void };
}

export function useDraft<T extends object>(initial: T): Draft<T> {
  const values = useSignal(initial);
  const set = (name: keyof T, value: unknown) => (values.value = { ...values.peek(), [name]: value });
  return {
    values,
    bind: (name) => ({ value: values.value[name], onInput: (value) => set(name, value) }),
    bindEach: (name) => ({
      value: values.value[name],
      onInput: (key, text) => set(name, { ...values.peek()[name], [key]: text }),
    }),
  };
}
