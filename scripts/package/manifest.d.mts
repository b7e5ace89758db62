export function manifestOf(manifest: {
  readonly name: string;
  readonly repository?: { readonly type: string; readonly url: string };
}): Record<string, unknown>;
