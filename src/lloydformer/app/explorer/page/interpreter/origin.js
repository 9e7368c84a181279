/** An origin near the data, rounded so that subtracting it is exact. */

/** The median of each column, rounded. Outliers do not move it. @returns {Float64Array} */
export function median(points) {
  return Float64Array.from({ length: points.cols }, (_, j) => {
    const column = Float64Array.from({ length: points.rows }, (_, i) => points.at(i, j));
    const center = middle(column);
    const ordered = column.slice().sort();
    const half = ordered[ordered.length - 1] / 2 - ordered[0] / 2;
    const spread = middle(column.map((x) => Math.abs(x - center))) || half;
    return spread > 0 ? rounded(center, spread) : center;
  });
}

/** The middle number, or the mean of the two middle ones. */
function middle(column) {
  const [ordered, n] = [column.slice().sort(), column.length];
  return ordered[(n - 1) >> 1] / 2 + ordered[n >> 1] / 2;
}

/** The nearest multiple of the largest power of two in the spread. */
function rounded(center, spread) {
  const quantum = 2 ** Math.floor(Math.log2(spread));
  return roundHalfToEven(center / quantum) * quantum;
}

function roundHalfToEven(x) {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
