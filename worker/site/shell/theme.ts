/** Light or dark; without a choice, as the system says. localStorage, because it can be read before the first paint. */
export type Theme = 'light' | 'dark';

const NAME = 'continuo-theme';

const isTheme = (value: unknown): value is Theme => value === 'light' || value === 'dark';

/** Applies the visitor's choice, if there is one. */
export function applyStoredTheme(): void {
  const stored = localStorage.getItem(NAME);
  if (isTheme(stored)) document.documentElement.dataset.theme = stored;
}

function currentTheme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  if (isTheme(chosen)) return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}

/** Switches to the other theme and remembers it. */
export function switchTheme(): void {
  const theme = currentTheme() === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  localStorage.setItem(NAME, theme);
}
