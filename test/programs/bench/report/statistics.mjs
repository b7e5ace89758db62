const sorted = (values) => values.filter(Number.isFinite).sort((a, b) => a - b);

export function median(values) {
  const all = sorted(values);
  const middle = all.length / 2;
  return all.length % 2 === 1 ? all[Math.floor(middle)] : (all[middle - 1] + all[middle]) / 2;
}

/** By nearest rank. */
export const percentile = (values, share) => {
  const all = sorted(values);
  return all[Math.ceil(all.length * share) - 1];
};

export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Median, least and most of each figure over the rounds. */
export function summary(samples) {
  const figures = [...new Set(samples.flatMap((sample) => Object.keys(sample)))];
  return Object.fromEntries(
    figures.map((figure) => {
      const values = sorted(samples.map((sample) => sample[figure]));
      return [figure, { median: median(values), least: values[0], most: values.at(-1) }];
    }),
  );
}

/** Least-squares line through points [x, y]. */
export function slope(points) {
  const meanX = sum(points.map(([x]) => x)) / points.length;
  const meanY = sum(points.map(([, y]) => y)) / points.length;
  const covariance = sum(points.map(([x, y]) => (x - meanX) * (y - meanY)));
  const perUnit = covariance / sum(points.map(([x]) => (x - meanX) ** 2));
  return { perUnit, base: meanY - perUnit * meanX };
}
