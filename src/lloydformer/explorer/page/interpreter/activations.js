/**
 * Activations: from the scores of a query to the weights of the keys.
 *
 * Each has `check` (refuse wrong parameters), `weigh` (one query: its scores, and what else it may
 * use), `lowering` (by how much scores of other clusters must be lowered) and its signs.
 */

import { descending, indexOfLargest, largest, Matrix } from "./matrix.js";
import { floatText, general } from "./python_text.js";
import { Refusal, require, requirePositive } from "./refusal.js";

const ROUNDING = 2 * Math.log(1 / Number.EPSILON);

/**
 * What an activation may use in addition to the scores.
 * @typedef {object} Context
 * @property {Matrix} gap scores lower than the best by more than this are other clusters'
 * @property {Matrix} tolerance uncertainty of the scores
 * @property {Matrix | null} logScores logarithms of the scores
 * @property {((scores: Matrix) => Matrix) | null} noise Gumbel noise of the shape of the scores
 */

/** The context that has nothing in addition. @type {Context} */
export const NOTHING = {
  gap: Matrix.filled(1, 1, Infinity),
  tolerance: new Matrix(1, 1),
  logScores: null,
  noise: null,
};

/** The weights of all keys for all queries. */
export function weigh(part, scores, context) {
  const activation = ACTIVATIONS[part.part];
  if (activation.all) return activation.all(part, scores, context);
  const weights = new Matrix(scores.rows, scores.cols);
  for (let i = 0; i < scores.rows; i++) {
    weights.row(i).set(activation.weigh(part, scores.row(i), context, i));
  }
  return weights;
}

/** The activation of the forward pass. */
export function forwardOf(part) {
  return part.part === "StraightThrough" ? part.activation : part;
}

export const ACTIVATIONS = {
  Softmax: {
    short: "SMA",
    symbol: (part) => general(part.inverse_temperature),
    check: checkTemperature,
    weigh: (part, scores) => softmax(scores.map((a) => part.inverse_temperature * a)),
    lowering: (part, reach) => reach.nearest + ROUNDING / part.inverse_temperature,
  },
  LogSoftmax: {
    short: "LogSMA",
    symbol: (part) => `log ${general(part.inverse_temperature)}`,
    check: checkTemperature,
    weigh: (part, scores) => logSoftmax(scores.map((a) => part.inverse_temperature * a)),
    lowering: refuse("activation: logarithms are not weights of points; use Softmax"),
  },
  Linear: {
    short: "LinA",
    symbol: () => "lin",
    check() {},
    all: linearWeights,
    lowering: refuse(
      "activation: linear attention cannot keep clusters apart by a separation; " +
        "use Sparsemax, Softmax, TopK or NormMax",
    ),
  },
  Identity: {
    short: "IdA",
    symbol: () => "I",
    check() {},
    all: (part, scores) => scores,
    lowering: refuse("activation: identity attention does not give weights of points"),
  },
  LimitingSoftmax: {
    short: "LSMA",
    symbol: () => "∞",
    check: ({ ties }) =>
      require(["first", "average"].includes(ties), "ties", ties, 'pass "first" or "average"'),
    weigh: ({ ties }, scores, context, i) =>
      ties === "first" ? best(scores) : allBest(scores, context.tolerance, i),
    lowering: (part, reach) => reach.nearest,
  },
  Gumbel: {
    short: "GSMA",
    symbol: (part) => `GSM ${general(part.temperature)}`,
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
  Ranked: {
    short: "RSMA",
    symbol: ({ rank, in_order }) =>
      in_order ? "ranks in order" : rank === null ? "rank" : `rank ${rank}`,
    check({ rank, in_order }) {
      require(rank === null || (Number.isInteger(rank) && rank >= 0), "rank", rank,
        "pass None (the number of the query) or an integer, 0 or more", false);
      require(rank === null || !in_order, "in_order", in_order, "in_order needs rank=None");
    },
    all: rankedWeights,
    lowering: (part, reach) => reach.farthest,
  },
  FirstOfEquals: {
    short: "LSMA",
    symbol: (part) => `∞ within ${general(part.within)}`,
    check: ({ within }) =>
      require(within >= 0 && within < 1, "within", within, "pass a fraction from 0 to below 1"),
    weigh({ within }, scores) {
      const top = largest(scores);
      return best(scores.map((a) => (a >= top - within * Math.abs(top) ? 1 : 0)));
    },
    lowering: (part, reach) => reach.farthest,
  },
  Lots: {
    short: "GLinA",
    symbol: ({ power, choice }) =>
      `GLin ${general(power)} ${ACTIVATIONS[choice.part].symbol(choice)}`,
    check({ power, choice }) {
      requirePositive("power", power);
      require(["LimitingSoftmax", "Ranked"].includes(choice.part), "choice", choice,
        'pass LimitingSoftmax("first") or Ranked()');
    },
    all({ power, choice }, scores, context) {
      if (!context.noise) {
        throw new Refusal("seed: found None; this attention draws noise, pass an integer seed");
      }
      const noise = context.noise(scores);
      return weigh(choice, scores.map((a, at) => power * Math.log(a) + noise.data[at]), context);
    },
    lowering: refuse("activation: Lots needs non-negative scores; use Gumbel"),
  },
  Sparsemax: {
    short: "SSMA",
    symbol: (part) => `sparsemax ${general(part.inverse_temperature)}`,
    check: checkTemperature,
    weigh: (part, scores) => sparsemax(scores, part.inverse_temperature),
    lowering: (part, reach) => reach.nearest + 1 / part.inverse_temperature,
  },
  TopK: {
    short: "SSMA",
    symbol: ({ m, inverse_temperature }) => `top-${m} ${general(inverse_temperature)}`,
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
    short: "NMA",
    symbol: ({ keep, inverse_temperature }) => `NM ${general(keep || inverse_temperature)}`,
    check: checkNormMax,
    weigh: normMax,
    lowering: ({ inverse_temperature: gamma }, reach) =>
      gamma === null ? 2 * reach.farthest : reach.nearest + 1 / gamma,
  },
  StraightThrough: {
    short: (part) => ACTIVATIONS[part.activation.part].short,
    symbol: (part) => ACTIVATIONS[part.activation.part].symbol(part.activation),
    check() {},
    all: (part, scores, context) => weigh(part.activation, scores, context),
    lowering: (part, reach) => ACTIVATIONS[part.activation.part].lowering(part.activation, reach),
  },
};

function refuse(words) {
  return () => {
    throw new Refusal(words);
  };
}

function checkTemperature(part) {
  requirePositive("inverse_temperature", part.inverse_temperature);
}

function byRows(scores, weighRow) {
  const weights = new Matrix(scores.rows, scores.cols);
  for (let i = 0; i < scores.rows; i++) weights.row(i).set(weighRow(scores.row(i), i));
  return weights;
}

export function softmax(scores) {
  const top = largest(scores);
  const weights = scores.map((a) => Math.exp(a - top));
  const mass = total(weights);
  return weights.map((w) => w / mass);
}

function logSoftmax(scores) {
  const top = largest(scores);
  const mass = Math.log(scores.reduce((total, a) => total + Math.exp(a - top), 0));
  return scores.map((a) => a - top - mass);
}

/** Weight 1 for the key with the largest score, the first one of equals. */
function best(scores) {
  const weights = new Float64Array(scores.length);
  weights[indexOfLargest(scores)] = 1;
  return weights;
}

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

function evenly(chosen) {
  const count = total(chosen);
  for (let j = 0; j < chosen.length; j++) chosen[j] /= count;
  return chosen;
}

function total(numbers) {
  let sum = 0;
  for (let j = 0; j < numbers.length; j++) sum += numbers[j];
  return sum;
}

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
  const size = ordered.filter((a) => a > ordered[0] - gap.spread(i, 0)).length;
  return Math.max(1, Math.ceil(keep * size - 1e-9));
}

/** Scores divided by their sum; by their logarithms, where they are too small for a float. */
function linearWeights(part, scores, context) {
  const logs = context.logScores;
  const patched = logs && scores.data.some(
    (a, at) => Math.abs(a - Math.exp(logs.data[at])) > 16 * Number.EPSILON);
  return byRows(scores, (row, i) => {
    const mass = total(row);
    const faint = logs && !patched && mass / row.length < Math.sqrt(Number.EPSILON);
    return faint ? softmax(logs.row(i)) : row.map((a) => a / mass);
  });
}

/** The order of two numbers; not-a-number is the largest. */
function compare(a, b) {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return (a > b) - (a < b);
}

function rankedWeights({ rank, in_order }, scores) {
  const last = rank === null ? scores.rows - 1 : rank;
  if (last >= scores.cols) {
    throw new Refusal(
      `rank: found ${last} for ${scores.cols} keys; the last one is ${scores.cols - 1}`);
  }
  return byRows(scores, (row, i) => {
    let order = Array.from(row.keys()).sort((a, b) => compare(row[b], row[a]) || a - b);
    if (in_order) order = order.slice(0, scores.rows).sort((a, b) => a - b);
    const weights = new Float64Array(row.length);
    weights[order[rank === null ? i : rank]] = 1;
    return weights;
  });
}
