export const CONNECTION_NAME_RULE = 'a text of ASCII characters without spaces';

/** Whether CLIENT SETNAME takes it. ioredis does not report that a server has refused a name. */
export const isConnectionName = (name: unknown): name is string =>
  typeof name === 'string' && /^[!-~]+$/.test(name);
