export function pages(
  root: string,
  manifest: { readonly version: string; readonly repository?: { readonly url: string } },
): Record<string, string>;
