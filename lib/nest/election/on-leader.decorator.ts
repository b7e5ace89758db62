import 'reflect-metadata';
import type { Term } from '../../api/election.js';
import { injectService } from '../service/service-property.js';
import { campaignsOf } from './campaigns.js';
import {
  assertLeaderOptions,
  decoratedMethod,
  type LeaderOptions,
  rememberLeaderMethod,
} from './leader-method.js';

/** Fits methods that take nothing, or the term. */
export type OnLeaderDecorator = <Method extends (term: Term) => unknown>(
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Runs the method while this process is the leader of that election. The application campaigns from its bootstrap to its
 * shutdown, and the method is called once for each term, with the term. It has to end soon after the signal of the term has
 * aborted: the lock is released when all methods of the term have ended, at the latest at the deadline of the lease.
 *
 * A method that returns early leaves this process the leader. A method that throws makes it resign: the error is logged,
 * another process is elected, and this one campaigns again after a pause that grows from 1 s to 30 s. So does a method that
 * returns work which is not yet done, such as an Observable or an iterator: no code would subscribe to it or read it.
 *
 * The class has to be a provider, a controller, or a guard and the like, of the default scope, whose object Nest makes, else
 * the boot fails. A lazily loaded module with such a class fails to load. If LockModule itself is loaded lazily, the method
 * never runs: Nest calls no bootstrap hook there.
 * @param election the name of the election, see {@link LockService.getElection}
 * @throws LockConfigError when it is applied, if the name or an option is wrong, or the method is a generator
 */
export function OnLeader(election: string, options: LeaderOptions = {}): OnLeaderDecorator {
  return (target, property, descriptor) => {
    const { declared } = decoratedMethod('@OnLeader', target, property, descriptor);
    assertLeaderOptions(declared, election, options);
    injectService(target, options.instance, (service) => {
      const campaigns = campaignsOf(service);
      campaigns.assertBooting(declared);
      campaigns.of(election, options);
    });
    rememberLeaderMethod(target, { property, election, options });
  };
}
