/**
 * Makes a wrapper look like what it wraps: name, length, and all that decorators have said about it (routes, guards,
 * schedules, patterns…), so that it does not matter which decorator stands above the other.
 */
export function copyMetadata(from: object, to: object): void {
  for (const key of Reflect.getOwnMetadataKeys(from)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, from), to);
  }
  for (const property of ['name', 'length']) {
    const descriptor = Object.getOwnPropertyDescriptor(from, property);
    if (descriptor !== undefined) Object.defineProperty(to, property, descriptor);
  }
}
