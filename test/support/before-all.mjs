import { bundlePackage } from './bundle-package.mjs';
import { removeOld } from './bundle-cache.mjs';
import { bundleCommonJs } from './bundle-commonjs.mjs';
import { bundleSources } from './bundle-sources.mjs';
import { bundleWorld } from '../world/bundle.mjs';
import { provideRedis } from './provide-redis.mjs';

/** Runs once before all test files. */
export default async function beforeAllFiles() {
  provideRedis();
  await bundlePackage();
  await bundleSources();
  await bundleCommonJs();
  await bundleWorld();
  await removeOld();
}
