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

/** A time of `ms` as `datetime` has it. */
export const isoTime = (ms: number): string => `PT${String(Math.max(0, Math.round(ms / 1_000)))}S`;

const DAY = 86_400;

/** How far the bar of an age goes, from 0 to 100: by its logarithm, so that seconds and days are on one scale. */
export const ageShare = (ms: number): number =>
  Math.min(100, (Math.log1p(Math.max(0, ms) / 1_000) / Math.log1p(DAY)) * 100);

/** How far the bar of a lease goes, from 0 to 100. */
export const leaseShare = (left: number, lease: number): number =>
  lease <= 0 ? 0 : Math.min(100, Math.max(0, (left / lease) * 100));

/** A time of day. */
export const clockText = (at: number): string => {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};
