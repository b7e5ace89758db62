export { afterEach, beforeEach, describe, expect, it, vi as jest } from 'vitest';
