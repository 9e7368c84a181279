// Centers to begin with.
import { generator } from "./random.js";

/** Other centers to begin with: points drawn at random, or one after the other, far from those before. */
export function startingCenters(points, k, seed, spread) {
  const { uniform } = generator(seed * 7919 + k);
  const distance = (a, b) => a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0);
  const chosen = [points[Math.floor(uniform() * points.length)]];
  while (chosen.length < k) {
    const free = points.map((p) => Math.min(...chosen.map((c) => distance(p, c))));
    const weights = spread ? free : free.map((f) => (f > 0 ? 1 : 0));
    const total = weights.reduce((a, b) => a + b, 0);
    let left = uniform() * total;
    const at =
      total > 0 ? weights.findIndex((w) => (left -= w) < 0) : Math.floor(uniform() * points.length);
    chosen.push(points[at < 0 ? points.length - 1 : at]);
  }
  return chosen.map((p) => [...p]);
}
