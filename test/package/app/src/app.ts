import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, type DynamicModule, Injectable, Module, Param, Post } from '@nestjs/common';
import { assertLocked, DistributedLock, LockModule, type LockModuleOptions } from 'nestjs-distributed-lock';
import { LockBoardModule } from 'nestjs-distributed-lock/board';

@Injectable()
export class Orders {
  private inside = 0;
  most = 0;

  @DistributedLock('order:$<args[0]>', { waitTime: 5_000 })
  async pay(id: string): Promise<string> {
    assertLocked(`order:${id}`);
    this.most = Math.max(this.most, ++this.inside);
    await sleep(2);
    this.inside--;
    return `paid ${id}`;
  }

  @DistributedLock('order:$<args[0]>', { waitTime: 0 })
  async cancel(id: string): Promise<string> {
    return `cancelled ${id}`;
  }
}

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: Orders) {}

  @Post(':id/pay')
  async pay(@Param('id') id: string): Promise<string> {
    return await this.orders.pay(id);
  }

  @Post(':id/cancel')
  async cancel(@Param('id') id: string): Promise<string> {
    return await this.orders.cancel(id);
  }
}

@Module({})
export class AppModule {
  static forRoot(options: LockModuleOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [LockModule.forRoot(options), LockBoardModule.forRoot()],
      controllers: [OrdersController],
      providers: [Orders],
    };
  }
}
