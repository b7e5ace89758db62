/** How many frames of a stack are looked at: those of this package, of Nest and of RxJS come first. */
const MOST_FRAMES = 50;

/** Frames of code that calls the application's code, and is not its code. */
const FOREIGN = /^node:|[\\/]node_modules[\\/](?:@nestjs|rxjs|reflect-metadata|@opentelemetry)[\\/]/;

const SELF = /[\\/]core[\\/]call-site\.[cm]?[jt]s$/;

/**
 * File, line and column of the nearest caller that is neither this package nor a framework. Undefined where the stack has
 * none: after a wait, or where all code is in one bundle. It costs some microseconds.
 */
export function callSite(): string | undefined {
  const { stackTraceLimit } = Error;
  const former = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  let frames: readonly NodeJS.CallSite[] = [];
  try {
    Error.stackTraceLimit = MOST_FRAMES;
    // Frames and not text: what the text looks like depends on what else is installed in the process.
    Error.prepareStackTrace = (_, found) => {
      frames = found;
      return '';
    };
    const holder: { stack?: string } = {};
    Error.captureStackTrace(holder);
    // The stack is made when it is read.
    if (holder.stack === undefined) return undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (former === undefined) delete (Error as { prepareStackTrace?: unknown }).prepareStackTrace;
    else Object.defineProperty(Error, 'prepareStackTrace', former);
  }
  const sites = frames.map((frame) => ({ file: fileOf(frame), frame }));
  const self = sites[0]?.file;
  if (self === undefined) return undefined;
  // Its folder is that of the whole package, unless a bundler has put all code into one file.
  const isOwn = SELF.test(self)
    ? (file: string) => file.startsWith(self.replace(SELF, ''))
    : (file: string) => file === self;
  const caller = sites.find(({ file }) => file !== undefined && !isOwn(file) && !FOREIGN.test(file));
  if (caller?.file === undefined) return undefined;
  return `${caller.file}:${String(caller.frame.getLineNumber())}:${String(caller.frame.getColumnNumber())}`;
}

function fileOf(frame: NodeJS.CallSite): string | undefined {
  const file = frame.getFileName() ?? undefined;
  return file?.startsWith('file://') === true ? decodeURIComponent(file.slice('file://'.length)) : file;
}
