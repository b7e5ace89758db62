/** A decorator of an application's own, which opens a transaction around the method. */
export function InTransaction(): MethodDecorator {
  return (_, __, descriptor: PropertyDescriptor) => {
    const method = descriptor.value as (...args: unknown[]) => Promise<unknown>;
    descriptor.value = async function (...args: unknown[]) {
      return await method.apply(this, args);
    };
  };
}
