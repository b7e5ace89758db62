import type { Command, Commands, Session, Surroundings } from '../command.js';
import { wholeOf } from '../numbers.js';
import { OK, Refusal, type Reply } from '../replies.js';

type Evaluate = (server: Surroundings, text: string, parts: Parts, session: Session) => Reply;

interface Parts {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

const evaluating = (evaluate: Evaluate): Command => ({
  counts: [2, Infinity],
  notInScripts: true,
  run: (server, [text = '', number = '', ...rest], session) => {
    const count = wholeOf(number);
    if (count > rest.length) throw new Refusal("ERR Number of keys can't be greater than number of args");
    if (count < 0) throw new Refusal("ERR Number of keys can't be negative");
    return evaluate(server, text, { keys: rest.slice(0, count), args: rest.slice(count) }, session);
  },
});

export const scripting: Commands = {
  EVAL: evaluating((server, source, parts, session) => {
    const { scripts } = server;
    return scripts.run(scripts.load(source), parts, server, session);
  }),
  EVALSHA: evaluating((server, digest, parts, session) =>
    server.scripts.run(digest.toLowerCase(), parts, server, session),
  ),
  SCRIPT: {
    counts: [1, Infinity],
    notInScripts: true,
    run: ({ scripts }, [word = '', ...args]) => {
      switch (word.toUpperCase()) {
        case 'LOAD':
          return scripts.load(args[0] ?? '');
        case 'EXISTS':
          return args.map((digest) => (scripts.knows(digest.toLowerCase()) ? 1 : 0));
        case 'FLUSH':
          scripts.forget();
          return OK;
        default:
          throw new Refusal(`ERR unknown subcommand '${word}'. Try SCRIPT HELP.`);
      }
    },
  },
};
