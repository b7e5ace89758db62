/** Most frames of a stack that are read. The frames of this package, of Nest and of RxJS come first. */
const MOST_FRAMES = 50;

/** Frames of frameworks that call the application's code. */
const FOREIGN = /^node:|[\\/]node_modules[\\/](?:@nestjs|rxjs|reflect-metadata|@opentelemetry)[\\/]/;

const LIBRARY = /[\\/]node_modules[\\/]/;

const SELF = /[\\/]client[\\/]scope[\\/]call-site\.[cm]?[jt]s$/;

/** Frames keep the functions of a stack alive, with their variables and receivers. */
interface Trace {
  readonly stack?: unknown;
}

/** A captured stack. Its frames are read only if the place is needed. */
export interface Captured {
  /** Cleared as soon as the place is known, so that it keeps no code of a caller alive. */
  trace: Trace | undefined;
  site?: string | undefined;
}

/**
 * The stack of the calls above a function.
 * @param above this function, whose frames are left out together with the frames of its own calls
 * @returns undefined if Error is frozen or guarded, as in a hardened process: a lock must not fail because its caller
 *   is unknown
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
 * File, line and column of the nearest caller outside this package and the frameworks; if one of the callers is a file
 * of the application, the nearest of these. It costs some microseconds. Undefined if the stack names no such caller:
 * - after an await,
 * - if a bundler has put all code into one file,
 * - if the process forbids the reading of stacks.
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

export const callSite = (): string | undefined => siteOf(capture(callSite, MOST_FRAMES));

let isOwnFile: ((file: string) => boolean) | undefined;

/** Undefined if the process forbids the reading of stacks. */
function ownFiles(): typeof isOwnFile {
  if (isOwnFile !== undefined) return isOwnFile;
  const here = (): Captured | undefined => capture(here, 1);
  const self = pathOf(framesOf(here()?.trace)[0]?.getFileName() ?? undefined);
  if (self === undefined) return undefined;
  // The folder of the whole package, unless a bundler has put all code into one file.
  const folder = SELF.test(self) ? self.replace(SELF, '') : undefined;
  return (isOwnFile = (file) => (folder === undefined ? file === self : file.startsWith(folder)));
}

function framesOf(trace: Trace | undefined): readonly NodeJS.CallSite[] {
  const former = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  try {
    // Frames instead of text, because other packages in the process may change the format of the text.
    const value = (_: unknown, frames: readonly NodeJS.CallSite[]) => frames;
    if (!Reflect.defineProperty(Error, 'prepareStackTrace', { value, configurable: true, writable: true }))
      return [];
    // The first read makes the stack, and later reads return the same frames.
    const frames = trace?.stack;
    return Array.isArray(frames) ? (frames as NodeJS.CallSite[]) : [];
  } catch {
    return [];
  } finally {
    if (former === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace');
    else Reflect.defineProperty(Error, 'prepareStackTrace', former);
  }
}

/** The path of a file. A stack frame names an ES module by its URL. */
export function pathOf(file: string | undefined): string | undefined {
  if (file?.startsWith('file://') !== true) return file;
  const path = file.slice('file://'.length).replace(/^\/(?=[A-Za-z]:)/, '');
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
