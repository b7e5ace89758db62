const KEY = 'locks-board-theme';

/** A browser may deny it. */
function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is left.
  }
}

const set = (theme: string): void => {
  document.documentElement.dataset.theme = theme;
};

/** Before anything is drawn. */
export function applyTheme(): void {
  const theme = remembered();
  if (theme === 'light' || theme === 'dark') set(theme);
}

export function switchTheme(): void {
  const isDark =
    (document.documentElement.dataset.theme ??
      (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const theme = isDark ? 'light' : 'dark';
  set(theme);
  remember(theme);
}
