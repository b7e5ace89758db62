const KEY = 'locks-board-theme';
const { dataset } = document.documentElement;

/** A browser may deny it: then the theme is the one of the system at first, and a chosen one holds until the page is left. */
function storage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

/** The theme that a viewer has chosen, before anything is drawn. */
export function applyTheme(): void {
  const theme = storage()?.getItem(KEY);
  if (theme === 'light' || theme === 'dark') dataset.theme = theme;
}

export function switchTheme(): void {
  const present = dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  dataset.theme = present === 'dark' ? 'light' : 'dark';
  storage()?.setItem(KEY, dataset.theme);
}
