export const isReply = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'ReplyError';

/** Before Redis 7 an error inside a script is wrapped in an error of the script: `ERR Error running script …: -OOM …`. */
const WRAPPING = /^ERR Error running script .*@user_script: ?\d+: (?:@user_script: ?\d+: )?-?/;
export const unwrapped = ({ message }: Error): string => message.replace(WRAPPING, '');

/** The refusal of a command inside a script is an `ERR`, or has no code if it is wrapped. */
export const FORBIDDEN = /^(?:[A-Z]+ )?(?:ACL failure in script|The user executing the script can't)/;

/** A provider has renamed or removed the command. */
export const UNKNOWN = /^(?:ERR )?unknown (?:redis )?command/i;
