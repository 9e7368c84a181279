// Lloyd's algorithm as one would write it without a transformer.
const distance = (a, b) => a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0);
const nearest = (p, centers) => centers.reduce((best, c, j) => (distance(p, c) < distance(p, centers[best]) ? j : best), 0);

/** {centers, objective} after 0, 1, ..., `count` iterations. */
export function lloydSteps(points, start, count) {
  const centers = [start.map((c) => [...c])];
  for (let t = 0; t < count; t += 1) {
    const labels = points.map((p) => nearest(p, centers[t]));
    centers.push(centers[t].map((c, j) => {
      const mine = points.filter((_, i) => labels[i] === j);
      return mine.length ? c.map((_, axis) => mine.reduce((sum, p) => sum + p[axis], 0) / mine.length) : c;
    }));
  }
  const objective = centers.map((rows) => points.reduce((sum, p) => sum + distance(p, rows[nearest(p, rows)]), 0));
  return { centers, objective };
}
