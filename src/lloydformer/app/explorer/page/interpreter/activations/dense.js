/** Activations that give every key a weight: soft-max, log-soft-max, linear, identity. */

import { largest } from "../matrix.js";
import { byRows, checkTemperature, refuse, ROUNDING, softmax, total } from "./weights.js";

export const DENSE = {
  Softmax: {
    check: checkTemperature,
    weigh: (part, scores) => softmax(scores.map((a) => part.inverse_temperature * a)),
    lowering: (part, reach) => reach.nearest + ROUNDING / part.inverse_temperature,
  },
  LogSoftmax: {
    check: checkTemperature,
    weigh: (part, scores) => logSoftmax(scores.map((a) => part.inverse_temperature * a)),
    lowering: refuse("activation: logarithms are not weights of points; use Softmax"),
  },
  Linear: {
    check() {},
    all: linearWeights,
    lowering: refuse(
      "activation: linear attention cannot keep clusters apart by a separation; " +
        "use Sparsemax, Softmax, TopK or NormMax",
    ),
  },
  Identity: {
    check() {},
    all: (part, scores) => scores,
    lowering: refuse("activation: identity attention does not give weights of points"),
  },
};

function logSoftmax(scores) {
  const top = largest(scores);
  const mass = Math.log(scores.reduce((total, a) => total + Math.exp(a - top), 0));
  return scores.map((a) => a - top - mass);
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
