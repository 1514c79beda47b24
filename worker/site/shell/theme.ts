import { deviceStorage } from '../store/guarded-storage.ts';

/** Light or dark, else as the system. In the device's storage, readable before the first paint. */
const NAME = 'continuo-theme';

const { style } = document.documentElement;

/** Applies the visitor's choice, if there is one. */
export function applyStoredTheme(): void {
  style.colorScheme = deviceStorage.get(NAME) ?? '';
}

/** Switches to the other theme and remembers it. */
export function switchTheme(): void {
  const preferred = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  style.colorScheme = (style.colorScheme || preferred) === 'dark' ? 'light' : 'dark';
  deviceStorage.set(NAME, style.colorScheme);
}
