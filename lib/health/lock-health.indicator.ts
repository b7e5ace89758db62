import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { serviceOf } from '../nest/service/service-of.js';

/** Which LockService the health check asks. */
export interface LockHealthOptions {
  /** The name of a LockService. @default the default instance */
  instance?: string | undefined;
}

/**
 * Reports the health of a LockService to a health check of @nestjs/terminus. List it in the `providers` of a module that
 * imports TerminusModule. It finds the LockService wherever LockModule is imported.
 */
@Injectable()
export class LockHealthIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly modules: ModuleRef,
  ) {}

  /**
   * Reports `health()` of the LockService under `key`, with details that name hosts and ports. With a degraded health, the
   * check still answers 200. Terminus 11 has no word for degraded: there the status is `up`, with `degraded: true`.
   * @throws LockConfigError when there is no such instance; the health itself is reported and never thrown
   */
  async isHealthy<const Key extends string>(
    key: Key,
    { instance }: LockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const { status, ...details } = await serviceOf(this.modules, instance).health();
    const session = this.indicators.check(key);
    if (status === 'down') return session.down(details);
    if (status === 'up') return session.up(details);
    const knowing: Partial<typeof session> = session;
    return knowing.degraded?.(details) ?? session.up({ ...details, degraded: true });
  }
}
