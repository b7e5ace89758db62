/** How many frames of a stack are looked at: the frames of this package, of Nest and of RxJS come first. */
const MOST_FRAMES = 50;

/** Frames of code that calls the application's code, and is not its code. */
const FOREIGN = /^node:|[\\/]node_modules[\\/](?:@nestjs|rxjs|reflect-metadata|@opentelemetry)[\\/]/;

const SELF = /[\\/]core[\\/]call-site\.[cm]?[jt]s$/;

/**
 * File, line and column of the nearest caller that is neither this package nor a framework. Undefined where the stack has
 * none: after a wait, where all code is in one bundle, or where the process allows no look at it. It costs some microseconds.
 */
export function callSite(): string | undefined {
  const sites = framesHere().map((frame) => ({ file: pathOf(frame.getFileName() ?? undefined), frame }));
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

/** None where Error is frozen or guarded, as in a hardened process: a lock must not fail because its caller is not known. */
function framesHere(): readonly NodeJS.CallSite[] {
  const limit = Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit');
  const former = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace');
  let frames: readonly NodeJS.CallSite[] = [];
  // Frames and not text: what the text looks like depends on what else is installed in the process.
  const keep = (_: unknown, found: readonly NodeJS.CallSite[]): string => {
    frames = found;
    return '';
  };
  try {
    Reflect.set(Error, 'stackTraceLimit', MOST_FRAMES);
    const replaced = { value: keep, configurable: true, writable: true };
    if (!Reflect.defineProperty(Error, 'prepareStackTrace', replaced)) return [];
    const holder: { stack?: string } = {};
    Error.captureStackTrace(holder);
    // The stack is made when it is read.
    return holder.stack === undefined ? [] : frames;
  } catch {
    return [];
  } finally {
    restore('stackTraceLimit', limit);
    restore('prepareStackTrace', former);
  }
}

function restore(name: string, former: PropertyDescriptor | undefined): void {
  if (former === undefined) Reflect.deleteProperty(Error, name);
  else Reflect.defineProperty(Error, name, former);
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
