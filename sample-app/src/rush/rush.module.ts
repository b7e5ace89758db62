import { Module } from '@nestjs/common';
import { RushController } from './rush.controller.js';
import { RushService } from './rush.service.js';

@Module({ controllers: [RushController], providers: [RushService] })
export class RushModule {}
