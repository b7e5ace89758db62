export { ElectionHealthIndicator } from './election-health.indicator.js';
export { LockHealthIndicator, type LockHealthOptions } from './lock-health.indicator.js';
