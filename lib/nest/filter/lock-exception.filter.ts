import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  Inject,
  Injectable,
  Logger,
  Optional,
} from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { HttpAdapterHost } from '../core-tokens.js';
import { STATUS_CODES } from 'node:http';
import { type Observable, throwError } from 'rxjs';
import { LockError, type LockErrorBody, type LockErrorCode } from '../../api/errors.js';
import { isLockClosedError, isLockTimeoutError, isLockUnavailableError } from '../../api/error-guards.js';
import { OutageLog } from '../outage-log.js';

/** The status codes of gRPC, which is no dependency of this package. */
const GRPC: Readonly<Record<LockErrorCode, number>> = {
  LOCK_TIMEOUT: 8, // RESOURCE_EXHAUSTED
  LOCK_UNAVAILABLE: 14, // UNAVAILABLE
  LOCK_CLOSED: 14,
  LOCK_LOST: 10, // ABORTED
  LOCK_ABORTED: 1, // CANCELLED
  LOCK_KEY: 13, // INTERNAL
  LOCK_KIND_MISMATCH: 13,
  LOCK_CONFIG: 13,
};
const INVALID_ARGUMENT = 3;

/**
 * Answers the clients of each transport in its convention if a lock is busy, lost or unavailable. The answer has the
 * error's `code` and `publicMessage`, and reveals no name, owner, host or command.
 *
 * - HTTP: the status with `statusCode`, `error`, `message` and `code`; the header `Retry-After` if {@link
 *   LockTimeoutError.remainingTime} is known
 * - microservices: an error with `status: 'error'`, `code` and `message`; for gRPC one of its status codes
 * - WebSocket: the event `exception` with `status: 'error'`, `code` and `message`
 * - GraphQL: an error with `extensions.code` and `extensions.http.status`
 *
 * {@link LockModule} binds it to the whole application with the lowest precedence: every filter of the application that
 * catches these errors comes before it. Nest binds no global filter to microservices of a hybrid application without
 * `inheritAppConfig`. There bind it with `@UseFilters(LockExceptionFilter)`.
 *
 * Failures are logged as errors: an outage once, with the number of calls at its end. A busy lock, a shutdown and a fault of a client are not.
 */
@Catch(LockError)
@Injectable()
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  private readonly logger = new Logger(LockExceptionFilter.name);
  private readonly outages = new OutageLog(this.logger);

  constructor(@Optional() @Inject(HttpAdapterHost) private readonly adapterHost?: HttpAdapterHost) {}

  catch(error: LockError, host: ArgumentsHost): Observable<never> | undefined {
    const { code, publicMessage: message } = error;
    if (isLockUnavailableError(error)) this.outages.add(error);
    else if (error.status >= 500 && !isLockClosedError(error)) this.logger.error(error);
    switch (host.getType<string>()) {
      case 'http':
        this.answer(error, host);
        return undefined;
      case 'rpc':
        return throwError(() =>
          isGrpc(host) ? { code: grpcCodeOf(error), message } : { status: 'error', code, message },
        );
      case 'ws':
        emitException(host.switchToWs().getClient<unknown>(), { status: 'error', code, message });
        return undefined;
      case 'graphql':
        throw new GraphQLLockError(error);
      default:
        throw error;
    }
  }

  private answer(error: LockError, host: ArgumentsHost): void {
    const args = host.getArgs<unknown[]>();
    const response = args[1] as HttpResponse | null | undefined;
    // ExternalContextCreator calls handlers of a transport that it does not know HTTP.
    if (args.length !== 3 || typeof response !== 'object' || response === null) throw error;
    const adapter: Adapter = this.adapterHost?.httpAdapter ?? EXPRESS_OR_FASTIFY;
    if (adapter.isHeadersSent(response)) {
      adapter.end(response);
      return;
    }
    const retryAfter = isLockTimeoutError(error) ? error.remainingTime : undefined;
    if (retryAfter !== undefined) {
      adapter.setHeader(response, 'Retry-After', String(Math.max(1, Math.ceil(retryAfter / 1_000))));
    }
    adapter.reply(response, bodyOf(error), error.status);
  }
}

const bodyOf = ({ status, publicMessage, code }: LockError): LockErrorBody => ({
  statusCode: status,
  error: STATUS_CODES[status],
  message: publicMessage,
  code,
});

type Adapter = Pick<AbstractHttpAdapter, 'isHeadersSent' | 'end' | 'setHeader' | 'reply'>;

/** The common part of the responses of Express and Fastify. */
interface HttpResponse {
  readonly headersSent?: boolean;
  readonly sent?: boolean;
  readonly raw?: { end(): void };
  end?(): void;
  header(name: string, value: string): void;
  status(status: number): { send(body: unknown): void };
}

/** For a filter that Nest has not made, and that therefore has no adapter. */
const EXPRESS_OR_FASTIFY: Adapter = {
  isHeadersSent: (response: HttpResponse) => response.headersSent ?? response.sent === true,
  end: (response: HttpResponse) => (response.raw ?? response).end?.(),
  setHeader: (response: HttpResponse, name, value) => {
    response.header(name, value);
  },
  reply: (response: HttpResponse, body, status = 500) => {
    response.status(status).send(body);
  },
};

/** The call of gRPC is among the arguments: the first of a stream that the handler reads by itself, else the third. */
const isGrpc = (host: ArgumentsHost): boolean =>
  host.getArgs<unknown[]>().some((argument) => hasMethod(argument, 'sendMetadata'));

const grpcCodeOf = ({ code, status }: LockError): number => (status === 400 ? INVALID_ARGUMENT : GRPC[code]);

/** As Nest's own filter. A native WebSocket is an EventEmitter too, but its events stay on the server. */
function emitException(client: unknown, payload: object): void {
  if (hasMethod(client, 'send') && typeof (client as { readyState?: unknown }).readyState === 'number') {
    client.send(JSON.stringify({ event: 'exception', data: payload }));
  } else if (hasMethod(client, 'emit')) {
    client.emit('exception', payload);
  }
}

const hasMethod = <Name extends string>(
  value: unknown,
  name: Name,
): value is Record<Name, (...args: unknown[]) => unknown> =>
  typeof (value as Record<Name, unknown> | null | undefined)?.[name] === 'function';

/**
 * The error for the answer of a GraphQL server, which sends the message of every error, and its `extensions`.
 */
class GraphQLLockError extends Error {
  readonly extensions: object;

  constructor(cause: LockError) {
    super(cause.publicMessage, { cause });
    this.name = cause.name;
    this.extensions = { code: cause.code, http: { status: cause.status } };
  }
}
