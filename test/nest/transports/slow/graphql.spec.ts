import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type INestApplication, UseInterceptors } from '@nestjs/common';
import { Args, GraphQLModule, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import { currentLease, LockInterceptor, LockModule, LockService } from '../../../../lib/index.js';
import { Busy, ErrorLog, type Failure, FAILURES, Invalid, openShop, secretsOf, Shop } from '../shop.js';

const typeDefs = `
  type Order { id: ID!, receipt: String }
  type Query { fail(name: String!): String, order: Order, invalid: String, keyed(id: ID!): String }
  type Mutation { handler: String }
`;

@Resolver('Order')
class Orders {
  constructor(private readonly shop: Shop) {}

  @Query()
  fail(@Args('name') name: Exclude<Failure['name'], 'invalid'>) {
    return this.shop.fail(name);
  }

  @Query()
  @UseInterceptors(Invalid())
  invalid() {
    return 'not refused';
  }

  @Query()
  @UseInterceptors(LockInterceptor('order:$<args[1].id>'))
  keyed() {
    return currentLease()?.name;
  }

  @Query()
  order() {
    return { id: '1' };
  }

  @ResolveField()
  receipt() {
    return this.shop.fail('busy');
  }

  @Busy()
  @Mutation()
  async handler() {
    return Promise.resolve('not refused');
  }
}

const graphQlWith = (options: ApolloDriverConfig) =>
  GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, typeDefs, graphiql: false, ...options });

interface Answer {
  readonly data: unknown;
  readonly errors: readonly { message: string; extensions: { code: string; stacktrace?: string[] } }[];
}

describe.each([
  ['with the status 200', {}, false],
  ['with the status of the error', { preserveHttpStatusForExecutionErrors: false }, true],
  ['without transformations', { autoTransformHttpErrors: false }, false],
])('GraphQL with Apollo, %s', (_, options, hasStatus) => {
  let app: INestApplication;
  const log = ErrorLog.ofEach();

  beforeAll(async () => {
    const graphQl = graphQlWith({
      fieldResolverEnhancers: ['filters'],
      includeStacktraceInErrorResponses: true,
      ...options,
    });
    app = await openShop({ imports: [graphQl], providers: [Orders] }, log);
  });

  afterAll(() => app.close());

  const post = async (query: string) => {
    const response = await fetch(`${await app.getUrl()}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    const text = await response.text();
    return { status: response.status, text, answer: JSON.parse(text) as Answer };
  };

  it.each(FAILURES)('tells a client: $name', async ({ name, code, status, message, isLogged }) => {
    const sent = await post(name === 'invalid' ? '{ invalid }' : `{ fail(name: "${name}") }`);
    expect(sent.answer.errors).toMatchObject([{ message, extensions: { code } }]);
    expect(Object.keys(sent.answer.errors[0]?.extensions ?? {}).sort()).toEqual(['code', 'stacktrace']);
    expect(sent.status).toBe(hasStatus ? status : 200);
    for (const secret of secretsOf(app)) expect(sent.text).not.toContain(secret);
    expect(log.errors).toHaveLength(isLogged ? 1 : 0);
  });

  it('locks a resolver by the arguments of its field', async () => {
    expect((await post('{ keyed(id: "7") }')).answer.data).toEqual({ keyed: 'order:7' });
  });

  it.each(['mutation { handler }', '{ order { receipt } }'])('tells a client of %s', async (query) => {
    const { answer, text } = await post(query);
    expect(answer.errors).toMatchObject([{ extensions: { code: 'LOCK_TIMEOUT' } }]);
    for (const secret of secretsOf(app)) expect(text).not.toContain(secret);
  });
});

describe('A field resolver', () => {
  const warningsWith = async (
    fieldResolverEnhancers: ApolloDriverConfig['fieldResolverEnhancers'] & object,
  ) => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory' }), graphQlWith({ fieldResolverEnhancers })],
      providers: [Orders, { provide: Shop, useValue: {} }],
    }).compile();
    const app = module.createNestApplication();
    app.useLogger(false);
    const warnings: string[] = [];
    app.get(LockService).events$.subscribe((event) => {
      if (event.type === 'warning') warnings.push(`${event.code} ${event.message}`);
    });
    await app.init();
    await app.close();
    return warnings;
  };

  it('without filters is reported at boot', async () => {
    expect(await warningsWith([])).toEqual([
      expect.stringMatching(/^unfiltered-field-resolver Orders\.receipt is a field resolver/),
    ]);
  });

  it('with filters is not', async () => {
    expect(await warningsWith(['guards', 'filters'])).toEqual([]);
  });
});
