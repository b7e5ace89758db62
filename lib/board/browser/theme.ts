const KEY = 'locks-board-theme';
const { dataset } = document.documentElement;

/** The theme that a viewer has chosen, before anything is drawn. A browser may deny it. */
export function applyTheme(): void {
  try {
    const theme = localStorage.getItem(KEY);
    if (theme === 'light' || theme === 'dark') dataset.theme = theme;
  } catch {
    // It is the one of the system then.
  }
}

export function switchTheme(): void {
  const ofSystem = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  dataset.theme = (dataset.theme ?? ofSystem) === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(KEY, dataset.theme);
  } catch {
    // It holds until the page is left.
  }
}
