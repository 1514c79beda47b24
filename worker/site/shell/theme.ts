/** Light or dark; without a choice, as the system says. localStorage, because it can be read before the first paint. */
const NAME = 'continuo-theme';

const { style } = document.documentElement;

/** Applies the visitor's choice, if there is one. */
export function applyStoredTheme(): void {
  style.colorScheme = localStorage.getItem(NAME) ?? '';
}

/** Switches to the other theme and remembers it. */
export function switchTheme(): void {
  const preferred = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  style.colorScheme = (style.colorScheme || preferred) === 'dark' ? 'light' : 'dark';
  localStorage.setItem(NAME, style.colorScheme);
}
