const two = (count: number): string => String(count).padStart(2, '0');

/** A time of `ms` in two units: `4 s`, `3 m 07 s`, `2 h 15 m`, `5 d 03 h`. */
export function timeText(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1_000);
  if (seconds < 60) return `${String(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${String(minutes)} m ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${String(hours)} h ${two(minutes % 60)} m`;
  return `${String(Math.floor(hours / 24))} d ${two(hours % 24)} h`;
}

/** A time that does not go on: `20 ms`, `0.3 s`. */
export const shortText = (ms: number): string =>
  ms < 95 ? `${String(Math.round(ms))} ms` : ms < 9_950 ? `${(ms / 1_000).toFixed(1)} s` : timeText(ms);

/** A time of `ms` as `datetime` has it. */
export const isoTime = (ms: number): string => `PT${String(Math.max(0, Math.round(ms / 1_000)))}S`;

/** A time of day. */
export const clockText = (at: number): string => {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

/** The zone of the times of day: `UTC+2`, of the browser or, before the script runs, of the server. */
export const zoneText = (at: number): string => {
  const offset = -new Date(at).getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  if (offset === 0) return 'UTC';
  return `UTC${offset < 0 ? '−' : '+'}${String(hours)}${minutes === 0 ? '' : `:${two(minutes)}`}`;
};
