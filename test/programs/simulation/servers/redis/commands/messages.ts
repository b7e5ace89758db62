import type { Command, Commands, Session, Surroundings } from '../command.js';
import { matcherOf } from '../glob.js';
import { Refusal, Several } from '../replies.js';

const countOf = (session: Session, sharded: boolean): number =>
  (sharded ? session.shardChannels : session.channels).size;

const subscribing = (name: string, sharded: boolean): Command => ({
  counts: [1, Infinity],
  notInScripts: true,
  run: ({ messages }, channels, session) =>
    new Several(
      channels.map((channel) => {
        messages.subscribe(session, channel, sharded);
        return [name, channel, countOf(session, sharded)];
      }),
    ),
});

const leaving = (name: string, sharded: boolean): Command => ({
  counts: [0, Infinity],
  notInScripts: true,
  run: ({ messages }, given, session) => {
    const own = sharded ? session.shardChannels : session.channels;
    const channels = given.length > 0 ? given : [...own];
    if (channels.length === 0) return new Several([[name, null, 0]]);
    return new Several(
      channels.map((channel) => {
        messages.unsubscribe(session, channel, sharded);
        return [name, channel, countOf(session, sharded)];
      }),
    );
  },
});

const publishing = (sharded: boolean): Command => ({
  counts: [2, 2],
  run: ({ messages }, [channel = '', message = '']) => messages.publish(channel, message, sharded),
});

function asked({ messages }: Surroundings, [word = '', ...args]: readonly string[]) {
  switch (word.toUpperCase()) {
    case 'NUMSUB':
    case 'SHARDNUMSUB': {
      const sharded = word.toUpperCase() === 'SHARDNUMSUB';
      return args.flatMap((channel) => [channel, messages.count(channel, sharded)]);
    }
    case 'CHANNELS':
    case 'SHARDCHANNELS':
      return messages.names(word.toUpperCase() === 'SHARDCHANNELS').filter(matcherOf(args[0] ?? '*'));
    default:
      throw new Refusal(`ERR unknown subcommand '${word}'. Try PUBSUB HELP.`);
  }
}

export const messages: Commands = {
  SUBSCRIBE: subscribing('subscribe', false),
  SSUBSCRIBE: subscribing('ssubscribe', true),
  UNSUBSCRIBE: leaving('unsubscribe', false),
  SUNSUBSCRIBE: leaving('sunsubscribe', true),
  PUBLISH: publishing(false),
  SPUBLISH: publishing(true),
  PUBSUB: { counts: [1, Infinity], run: asked },
};
