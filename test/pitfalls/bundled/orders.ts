import { Injectable } from '@nestjs/common';
import { OncePer } from '../../../lib/index.js';

/** Another class of the application has the same name. */
@Injectable()
export class Orders {
  @OncePer('$<class>.nightly', { period: '1d' })
  async nightly(): Promise<void> {
    await Promise.resolve();
  }
}
