/** Vectors as arrays, and the points that a center uses, for the plain algorithms. */

export const total = (numbers) => numbers.reduce((a, b) => a + b, 0);
export const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
export const squared = (x, y) => x.reduce((sum, value, i) => sum + (value - y[i]) ** 2, 0);
export const countOfOnes = (number) => number.toString(2).replaceAll("0", "").length;

/** The weights divided by their sum. */
export function scaled(weights) {
  const sum = total(weights);
  return weights.map((w) => w / sum);
}

/** Equal weights for the chosen ones. */
export function evenly(chosen) {
  const count = chosen.filter(Boolean).length;
  return chosen.map((mine) => (mine ? 1 / count : 0));
}

/** Assignments from scores: the first of the best centers, or all of them evenly. */
export function share(scores, ties) {
  const most = Math.max(...scores);
  if (ties === "average") return evenly(scores.map((value) => value === most));
  const first = scores.indexOf(most);
  return scores.map((_, j) => (j === first ? 1 : 0));
}

/** Weights of a column of a matrix of points by clusters, for each cluster. */
export function byCluster(centers, rows, weights) {
  return centers.map((_, j) => weights(Array.from(rows, (row) => row[j])));
}

/** |y_i - e_j|^2 by cluster: 0 for own points, 2 for those of other clusters. */
export function codeDistances(assignments) {
  return Array.from(assignments[0], (_, j) => assignments.map((row) =>
    row.reduce((sum, value, m) => sum + (value - (m === j ? 1 : 0)) ** 2, 0)));
}

/** The points that are nearest to each cluster's code; all if it has none. */
export function members(assignments) {
  return codeDistances(assignments).map((away) => {
    const least = Math.min(...away) + 1e-9;
    return away.map((value) => value <= least);
  });
}

/** The points with the largest share in each cluster; all if it is empty. */
export function largestShares(assignments) {
  return Array.from(assignments[0], (_, j) => {
    const most = Math.max(...assignments.map((row) => row[j])) - 1e-9;
    return assignments.map((row) => row[j] >= most);
  });
}

/** The weighted mean, relative to a point: exact though weights sum to 1 + 1e-16. */
export function mean(points, weights) {
  const origin = points[0];
  const sums = Array.from(origin, () => 0);
  weights.forEach((w, i) => {
    if (w !== 0) sums.forEach((_, j) => (sums[j] += w * (points[i][j] - origin[j])));
  });
  return sums.map((value, j) => origin[j] + value);
}
