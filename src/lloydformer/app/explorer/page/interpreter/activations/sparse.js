/** Activations that give keys with low scores the weight 0: sparsemax, top-k, norm-max. */

import { descending, largest } from "../matrix.js";
import { floatText } from "../python_text.js";
import { Refusal, require, requirePositive } from "../refusal.js";
import { checkTemperature, evenly, ROUNDING, softmax } from "./weights.js";

export const SPARSE = {
  Sparsemax: {
    check: checkTemperature,
    weigh: (part, scores) => sparsemax(scores, part.inverse_temperature),
    lowering: (part, reach) => reach.nearest + 1 / part.inverse_temperature,
  },
  TopK: {
    check(part) {
      const whole = Number.isInteger(part.m) && part.m >= 1;
      require(whole, "m", part.m, "pass an integer above 0", !Number.isInteger(part.m));
      checkTemperature(part);
    },
    weigh({ m, inverse_temperature }, scores) {
      const last = descending(scores)[Math.min(m, scores.length) - 1];
      return softmax(scores.map((a) => inverse_temperature * (a < last ? -Infinity : a)));
    },
    lowering: (part, reach) => reach.nearest + ROUNDING / part.inverse_temperature,
  },
  NormMax: {
    check: checkNormMax,
    weigh: normMax,
    lowering: ({ inverse_temperature: gamma }, reach) =>
      gamma === null ? 2 * reach.farthest : reach.nearest + 1 / gamma,
  },
};

/** p = [gamma a - tau]_+, with the threshold tau that makes the sum 1. */
export function sparsemax(scores, gamma) {
  const top = largest(scores);
  const z = scores.map((a) => gamma * (a - top));
  let [sum, threshold] = [0, NaN];
  for (const [r, value] of descending(z).entries()) {
    sum += value;
    if (value > (sum - 1) / (r + 1)) threshold = (sum - 1) / (r + 1);
  }
  return z.map((value) => Math.max(value - threshold, 0));
}

function checkNormMax({ inverse_temperature, keep }) {
  const given = [inverse_temperature, keep].filter((value) => value !== null);
  if (given.length !== 1) {
    const found = given.map((value) => floatText(value)).join(", ");
    throw new Refusal(`inverse_temperature, keep: found [${found}]; pass exactly one of them`);
  }
  if (keep === null) requirePositive("inverse_temperature", inverse_temperature);
  else require(keep > 0 && keep <= 1, "keep", keep, "pass a fraction above 0, at most 1");
}

/** Equal weights for the best keys: so many that gamma, or the fraction to keep, says. */
function normMax({ inverse_temperature: gamma, keep }, scores, context, i) {
  const ordered = descending(scores);
  const count = keep === null ? nAbove(ordered, 1 / gamma) : nKept(ordered, keep, context.gap, i);
  return evenly(scores.map((a) => (a >= ordered[count - 1] ? 1 : 0)));
}

/** How many keys have weight: key m + 1 does if m drops_{m+1} - sum of the drops before <= level. */
function nAbove(ordered, level) {
  let [count, sum] = [1, 0];
  for (let m = 1; m < ordered.length; m++) {
    if (m * (ordered[0] - ordered[m]) - sum <= level) count++;
    sum += ordered[0] - ordered[m];
  }
  return count;
}

function nKept(ordered, keep, gap, i) {
  const limit = ordered[0] - gap.spread(i, 0);
  let size = 0; // of the query's cluster
  while (ordered[size] > limit) size++;
  return Math.max(1, Math.ceil(keep * size - 1e-9));
}
