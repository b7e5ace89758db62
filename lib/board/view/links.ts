/** Which lock of which LockService is looked at. The links of the page are queries only: they hold wherever the page is. */
export function queryOf(instance: string, instances: readonly string[], lock?: string): string {
  const query = new URLSearchParams();
  if (instance !== instances[0]) query.set('instance', instance);
  if (lock !== undefined) query.set('lock', lock);
  return `?${query.toString()}`;
}
