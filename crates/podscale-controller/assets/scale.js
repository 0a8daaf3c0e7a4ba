// Axes: where a value is drawn, and which values get a label.

/** Round steps for a range of numbers. */
export function ticks(top, wanted, whole) {
  if (!(top > 0)) return [0];
  const rough = top / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.7) ?? rough;
  if (whole) step = Math.max(1, Math.round(step));
  const list = [];
  for (let value = 0; value <= top * 1.0001 && list.length < 20; value += step) list.push(value);
  return list;
}

const MINUTE = 60_000;
const STEPS = [
  5_000, 10_000, 15_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  60 * MINUTE, 120 * MINUTE, 180 * MINUTE, 360 * MINUTE, 720 * MINUTE, 1440 * MINUTE, 2880 * MINUTE, 10_080 * MINUTE,
];

/** Round times of day in a range, and how far apart they are. */
export function timeTicks(start, end, wanted) {
  const rough = (end - start) / Math.max(1, wanted);
  const step = STEPS.find((s) => s >= rough) ?? STEPS.at(-1);
  const offset = new Date(end).getTimezoneOffset() * MINUTE;
  const list = [];
  const first = Math.ceil((start - offset) / step) * step + offset;
  for (let time = first; time <= end && list.length < 50; time += step) list.push(time);
  return { step, list };
}

/** The top of an axis that holds a value with some air above it. */
export function roomy(peak, whole) {
  if (!(peak > 0)) return whole ? 4 : 1;
  return whole ? Math.max(4, Math.ceil(peak * 1.15)) : peak * 1.12;
}

/** The index of the last point not after a time, or -1. */
export function placeAt(points, time) {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
