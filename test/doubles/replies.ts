/** As ioredis gives an error that a server replies with. */
export const errorReply = (message: string): Error =>
  Object.assign(new Error(message), { name: 'ReplyError' });

/** What a double answers: an error is thrown. */
export async function answered(answer: () => unknown): Promise<unknown> {
  const value = await Promise.resolve().then(answer);
  if (value instanceof Error) throw value;
  return value;
}
