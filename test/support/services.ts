import { afterEach } from '@jest/globals';
import { type LockEvent, type LockModuleOptions, LockService } from '../../lib/index.js';

/** Opens services for a test, which close after it. Options that no call gives are those of the place. */
export function servicesOfEach(place: () => LockModuleOptions) {
  const services: LockService[] = [];
  /** Of all services of the test. */
  const events: LockEvent[] = [];
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
    events.length = 0;
  });
  const open = (options: Partial<LockModuleOptions> = {}): LockService => {
    const service = new LockService({ ...place(), ...options });
    services.push(service);
    service.events$.subscribe((event) => events.push(event));
    return service;
  };
  return { services, events, open };
}
