/** Activations that pick the best keys: limiting soft-max and Gumbel soft-max. */

import { largest } from "../matrix.js";
import { Refusal, require } from "../refusal.js";
import { best, byRows, evenly, ROUNDING, softmax } from "./weights.js";

export const HARD = {
  LimitingSoftmax: {
    check: ({ ties }) =>
      require(["first", "average"].includes(ties), "ties", ties, 'pass "first" or "average"'),
    weigh: ({ ties }, scores, context, i) =>
      ties === "first" ? best(scores) : allBest(scores, context.tolerance, i),
    lowering: (part, reach) => reach.nearest,
  },
  Gumbel: {
    check: ({ temperature }) =>
      require(temperature >= 0 && temperature < Infinity, "temperature", temperature,
        "pass 0 (the limit: a sample) or a positive finite number"),
    all(part, scores, context) {
      if (!context.noise) {
        throw new Refusal("seed: found None; Gumbel attention draws noise, pass an integer seed");
      }
      const noise = context.noise(scores);
      const drawn = scores.map((a, at) => a + noise.data[at]);
      const { temperature } = part;
      return byRows(drawn, (row) =>
        temperature === 0 ? best(row) : softmax(row.map((a) => a / temperature)));
    },
    lowering: (part, reach) => reach.nearest + 41 + ROUNDING * part.temperature,
  },
};

/** Equal weights for all keys that may be the best within their tolerance. */
function allBest(scores, tolerance, i) {
  const [lower, chosen] = [scores.slice(), scores.slice()];
  for (let j = 0; j < scores.length; j++) lower[j] -= tolerance.spread(i, j);
  const certain = largest(lower); // the best is not below
  for (let j = 0; j < scores.length; j++) {
    chosen[j] = scores[j] + tolerance.spread(i, j) >= certain ? 1 : 0;
  }
  return evenly(chosen);
}
