import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { AppModule, type ShopOptions } from '../src/app.module.js';
import { Sale } from '../src/tickets/sale.js';

/** A shop that listens. @returns its application and URL */
export async function openShop({
  seats,
  paymentTime,
  ...options
}: ShopOptions & Pick<Sale, 'seats' | 'paymentTime'>): Promise<{ app: INestApplication; url: string }> {
  const module = await Test.createTestingModule({ imports: [AppModule.forRoot(options)] })
    .overrideProvider(Sale)
    .useValue(Object.assign(new Sale(), { seats, paymentTime }))
    .compile();
  const app = module.createNestApplication();
  // What a shop refuses is what some of these tests are about.
  app.useLogger(false);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}
