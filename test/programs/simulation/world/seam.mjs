// What stands in place of lib/runtime/runtime.ts: all that the package takes from the runtime, as the actor that runs gives it.
const instance = globalThis.simulatedInstance;
export const monotonicTime = () => instance.actor.look();
export const timeOrigin = () => instance.actor.timeOrigin;
export const wallTime = () => instance.actor.wall();
export const processUptime = () => instance.actor.monotonic() / 1000;
export const machineUptime = () => instance.actor.monotonic() / 1000;
export const setTimer = (callback, time) => instance.actor.setTimer(callback, time);
export const clearTimer = (timer) => instance.actor.clearTimer(timer);
export const setRepeatingTimer = (callback, time) => instance.actor.setRepeatingTimer(callback, time);
export const clearRepeatingTimer = (timer) => instance.actor.clearTimer(timer);
export const idle = (timer) => timer.unref();
export const awake = (timer) => timer.ref();
export const sleep = (time) => instance.actor.sleep(time);
export const afterInput = (callback) => {
  instance.actor.afterInput(callback);
};
export const afterStep = (callback) => {
  queueMicrotask(callback);
};
export const atEndOfTurn = (callback) => {
  process.nextTick(callback);
};
export const random = () => instance.actor.random.next();
export const uuid = () => instance.actor.uuid();
export const timersAreFaked = () => false;
export const timersAreLegacy = () => false;
