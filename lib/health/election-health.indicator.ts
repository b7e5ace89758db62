import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import type { LockHealthOptions } from './lock-health.indicator.js';
import { serviceOf } from '../nest/service/service-of.js';

/**
 * Reports an election to a health check of @nestjs/terminus. List it in the `providers` of a module that imports
 * TerminusModule. It says something of the whole fleet, so it belongs into a check that alerts, and into none that restarts
 * a process: without a leader, all processes are `down` at once.
 */
@Injectable()
export class ElectionHealthIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly modules: ModuleRef,
  ) {}

  /**
   * Reports the election under `key`: `up` if the store knows a leader, with its label and term, otherwise `down`. `state`
   * is that of this process, see `Election.state`.
   * @param election its name
   * @throws LockConfigError when there is no such instance; a store that does not answer is reported and never thrown
   */
  async isHealthy<const Key extends string>(
    key: Key,
    election: string,
    { instance }: LockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key>> {
    const candidate = serviceOf(this.modules, instance).getElection(election);
    const session = this.indicators.check(key);
    try {
      const leader = await candidate.leader();
      const { state } = candidate;
      return leader === null
        ? session.down({ state, message: 'no process leads' })
        : session.up({ state, leader: leader.label, term: leader.term });
    } catch (error) {
      return session.down({ state: candidate.state, message: (error as Error).message });
    }
  }
}
