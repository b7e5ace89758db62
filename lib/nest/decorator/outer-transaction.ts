/**
 * Calls back when a later decorator, which stands above, puts a wrapper that opens a transaction in the method's place. Such
 * a wrapper has no mark of its own: the file of the decorator that assigns it identifies it.
 */
export function watchForTransaction(descriptor: PropertyDescriptor, found: () => void): void {
  let method: unknown = descriptor.value;
  const assign = (wrapper: unknown): void => {
    method = wrapper;
    const caller: { stack?: string } = {};
    Error.captureStackTrace(caller, assign);
    if (isOfTransaction(caller.stack ?? '')) found();
  };
  Object.defineProperty(descriptor, 'value', {
    get: () => method,
    set: assign,
    enumerable: true,
    configurable: true,
  });
}

/** The topmost frame is in a package or, outside of packages, in a file that is named after transactions. */
function isOfTransaction(stack: string): boolean {
  const frame = stack.split('\n').find((line) => /:\d+:\d+/.test(line)) ?? '';
  const [path = ''] = frame.split(/node_modules(?!.*node_modules)/).slice(-1);
  const place = path === frame ? path.replace(/^.*[\\/]/, '') : path;
  return /transaction/i.test(place);
}
