/** Which shipped recipe has the same parts. */

import { KNOWN } from "../recipes.js";

/** Fields whose value is a parameter of an algorithm: another value is no other algorithm. */
const PARAMETERS = ["inverse_temperature", "keep", "separation", "temperature", "m", "unit"];

/** Fields that are not parts, or make no difference to a run. */
const WORDS = ["name", "algorithm", "appendix", "dropout"];

/** The name of the recipe of the package with these parts, or "new". */
export function identify(recipe) {
  NAMES ??= new Map(KNOWN.map((known) => [written(known.recipe, true), known.name]));
  return NAMES.get(written(recipe, true)) ?? "new";
}

/** The names of known recipes by their parts; made when first needed. */
let NAMES = null;

/** Whether two recipes, or parts, are the same with their parameters, whatever their names. */
export function sameParts(a, b) {
  return written(a, false) === written(b, false);
}

/** The parts as a text, without names; `open`: with every parameter left open. */
function written(recipe, open) {
  return JSON.stringify(recipe, function write(field, value) {
    if (WORDS.includes(field) && this.part !== "Subspace") return undefined;
    if (!open || !PARAMETERS.includes(field)) return value;
    return field === "separation" || value !== null ? "open" : value;
  });
}
