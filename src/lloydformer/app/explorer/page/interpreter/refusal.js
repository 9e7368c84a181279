/** The error of a recipe, a problem or a number that cannot be run, in Python's words. */

import { pythonText } from "./python_text.js";

export class Refusal extends Error {
  constructor(message) {
    super(message);
    this.name = "Refusal";
  }
}

/** Refuse with argument, value found and repair, unless the condition holds. */
export function require(condition, argument, found, repair, float = true) {
  if (!condition) throw new Refusal(`${argument}: found ${pythonText(found, float)}; ${repair}`);
}

export function requirePositive(argument, value) {
  const good = typeof value === "number" && value > 0 && value < Infinity;
  require(good, argument, value, "pass a positive finite number");
}

/** Refuse what is not an integer of at least `least`. */
export function requireCount(name, value, least = 1) {
  const good = Number.isSafeInteger(value) && value >= least;
  require(good, name, value, `pass an integer, ${least} or more`, !Number.isInteger(value));
}
