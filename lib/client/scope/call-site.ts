/** How many frames of a stack are looked at: the frames of this package, of Nest and of RxJS come first. */
const MOST_FRAMES = 50;

/** Frames of code that calls the application's code, and is not its code. */
const FOREIGN = /^node:|[\\/]node_modules[\\/](?:@nestjs|rxjs|reflect-metadata|@opentelemetry)[\\/]/;

/** A file of a dependency. */
const LIBRARY = /[\\/]node_modules[\\/]/;

const SELF = /[\\/]core[\\/]call-site\.[cm]?[jt]s$/;

/** The frames of a stack. They refer to the functions on it, to their variables and to the objects whose methods they are. */
interface Trace {
  readonly stack?: unknown;
}

/** A stack as it was captured. Its frames are looked at only when the place is wanted. */
export interface Captured {
  /** Undefined as soon as the place has been looked for, so that it keeps no code of a caller. */
  trace: Trace | undefined;
  site?: string | undefined;
}

/**
 * The stack of the calls above a function.
 * @param above the frames of this function and of what it has called are left out
 * @returns undefined where Error is frozen or guarded, as in a hardened process: a lock must not fail because its caller is
 * not known
 */
export function capture(above: (...args: never[]) => unknown, frames: number): Captured | undefined {
  const limit = Error.stackTraceLimit as number | undefined;
  try {
    Error.stackTraceLimit = frames;
    const trace: Trace = {};
    Error.captureStackTrace(trace, above);
    return { trace };
  } catch {
    return undefined;
  } finally {
    if (limit === undefined) Reflect.deleteProperty(Error, 'stackTraceLimit');
    else Reflect.set(Error, 'stackTraceLimit', limit);
  }
}

/**
 * File, line and column of the nearest caller that is neither this package nor a framework; the nearest of the
 * application's own files if there is one. Undefined where the stack has none: after a wait, where all code is in one
 * bundle, or where the process allows no look at it. It costs some microseconds.
 */
export function siteOf(captured: Captured | undefined): string | undefined {
  if (captured?.trace !== undefined) {
    captured.site = siteIn(captured.trace);
    captured.trace = undefined;
  }
  return captured?.site;
}

function siteIn(trace: Trace): string | undefined {
  const isOwn = ownFiles();
  if (isOwn === undefined) return undefined;
  const callers = framesOf(trace)
    .map((frame) => ({ file: pathOf(frame.getFileName() ?? undefined), frame }))
    .filter(({ file }) => file !== undefined && !isOwn(file) && !FOREIGN.test(file));
  const caller = callers.find(({ file }) => !LIBRARY.test(file ?? '')) ?? callers[0];
  if (caller?.file === undefined) return undefined;
  return `${caller.file}:${String(caller.frame.getLineNumber())}:${String(caller.frame.getColumnNumber())}`;
}

/** The place of the code that runs now. */
export const callSite = (): string | undefined => siteOf(capture(callSite, MOST_FRAMES));

let isOwnFile: ((file: string) => boolean) | undefined;

/** Undefined where the process allows no look at a stack. */
function ownFiles(): typeof isOwnFile {
  if (isOwnFile !== undefined) return isOwnFile;
  const here = (): Captured | undefined => capture(here, 1);
  const self = pathOf(framesOf(here()?.trace)[0]?.getFileName() ?? undefined);
  if (self === undefined) return undefined;
  // Its folder is that of the whole package, unless a bundler has put all code into one file.
  const folder = SELF.test(self) ? self.replace(SELF, '') : undefined;
  return (isOwnFile = (file) => (folder === undefined ? file === self : file.startsWith(folder)));
}

function framesOf(trace: Trace | undefined): readonly NodeJS.CallSite[] {
  const former = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  try {
    // Frames and not text: what the text looks like depends on what else is installed in the process.
    const value = (_: unknown, frames: readonly NodeJS.CallSite[]) => frames;
    if (!Reflect.defineProperty(Error, 'prepareStackTrace', { value, configurable: true, writable: true }))
      return [];
    // The stack is made when it is read first, and keeps the frames from then on.
    const frames = trace?.stack;
    return Array.isArray(frames) ? (frames as NodeJS.CallSite[]) : [];
  } catch {
    return [];
  } finally {
    if (former === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Reflect.defineProperty(Error, 'prepareStackTrace', former);
  }
}

/** A file as it is known outside of the program. */
export function pathOf(file: string | undefined): string | undefined {
  if (file?.startsWith('file://') !== true) return file;
  const path = file.slice('file://'.length).replace(/^\/(?=[A-Za-z]:)/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
