import 'reflect-metadata';
import { STATUS_CODES } from 'node:http';
import type { LockErrorBody, LockErrorCode } from '../../api/errors.js';

/** As `@ApiResponse()` of @nestjs/swagger stores it, which is no dependency of this package. */
const API_RESPONSE = 'swagger/apiResponse';

/** What a client gets from a locked handler beside its own answers. */
const RESPONSES = {
  409: {
    ...responseOf(409, 'The resource is busy: another caller holds its lock', ['LOCK_TIMEOUT']),
    headers: {
      'Retry-After': {
        description: 'Seconds that the lease in the way has left, if that is known',
        schema: { type: 'integer' },
      },
    },
  },
  503: responseOf(503, 'Locks are unavailable, or the application is shutting down', [
    'LOCK_UNAVAILABLE',
    'LOCK_CLOSED',
  ]),
};

function responseOf(status: number, description: string, codes: readonly LockErrorCode[]): object {
  const properties: Record<keyof LockErrorBody, object> = {
    statusCode: { type: 'integer', enum: [status] },
    error: { type: 'string', enum: [STATUS_CODES[status]] },
    message: { type: 'string' },
    code: { type: 'string', enum: codes },
  };
  return { description, schema: { type: 'object', required: Object.keys(properties), properties } };
}

/**
 * Describes the answers 409 and 503 of locked handlers in the OpenAPI document of @nestjs/swagger: for one handler, or for all of
 * a controller. A response that the handler describes by itself stays as it is.
 */
export function ApiLockResponses(): ClassDecorator & MethodDecorator {
  return (target: object, _property?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const subject = (descriptor?.value ?? target) as object;
    const own = Reflect.getMetadata(API_RESPONSE, subject) as object | undefined;
    Reflect.defineMetadata(API_RESPONSE, { ...RESPONSES, ...own }, subject);
  };
}
