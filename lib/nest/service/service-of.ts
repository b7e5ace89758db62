import type { ModuleRef } from '@nestjs/core';
import { LockConfigError } from '../../api/errors.js';
import type { LockService } from '../../module/lock-service.js';
import { decoratorToken } from './lock-service.token.js';

/** @throws LockConfigError when there is no such instance */
export function serviceOf(modules: ModuleRef, instance: string | undefined): LockService {
  const token = decoratorToken(instance);
  try {
    return modules.get(token, { strict: false });
  } catch {
    const name = instance === undefined ? '' : `name: "${instance}", `;
    const rule = `there is no such LockService; import LockModule.forRoot({ ${name}… })`;
    throw new LockConfigError('instance', rule, { value: instance });
  }
}
