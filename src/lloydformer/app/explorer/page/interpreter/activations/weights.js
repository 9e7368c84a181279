/** What several activations share. */

import { indexOfLargest, largest, Matrix } from "../matrix.js";
import { Refusal, requirePositive } from "../refusal.js";

/** A score that is lower by this, over the inverse temperature, has eps^2 of the weight. */
export const ROUNDING = 2 * Math.log(1 / Number.EPSILON);

/** A function that refuses with these words. */
export function refuse(words) {
  return () => {
    throw new Refusal(words);
  };
}

export function checkTemperature(part) {
  requirePositive("inverse_temperature", part.inverse_temperature);
}

/** The weights of all queries, from a function of the scores of one. */
export function byRows(scores, weighRow) {
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

/** Weight 1 for the key with the largest score, the first one of equals. */
export function best(scores) {
  const weights = new Float64Array(scores.length);
  weights[indexOfLargest(scores)] = 1;
  return weights;
}

export function evenly(chosen) {
  const count = total(chosen);
  for (let j = 0; j < chosen.length; j++) chosen[j] /= count;
  return chosen;
}

export function total(numbers) {
  let sum = 0;
  for (let j = 0; j < numbers.length; j++) sum += numbers[j];
  return sum;
}
