/**
 * Gives a wrapper the properties of the wrapped function: name, length, and all metadata of decorators (routes, guards, schedules,
 * patterns…). So the order of the decorators does not matter.
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
