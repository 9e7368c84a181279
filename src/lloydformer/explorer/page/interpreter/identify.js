/** Which shipped recipe has the same parts. */

import { KNOWN } from "../recipes.js";

/** Fields whose value is a parameter of an algorithm: another value is no other algorithm. */
const PARAMETERS = ["inverse_temperature", "keep", "separation", "temperature", "m", "unit"];

/** Fields that do not belong to the parts. */
const WORDS = ["name", "algorithm", "appendix", "dropout"];

/** The name of the recipe of the package with these parts, or "new". */
export function identify(recipe) {
  const wanted = structure(recipe);
  return KNOWN.find((known) => structure(known.recipe) === wanted)?.name ?? "new";
}

/** The parts as a text, without names and with every parameter left open. */
function structure(recipe) {
  return JSON.stringify(recipe, function write(field, value) {
    if (WORDS.includes(field) && this.part !== "Subspace") return undefined;
    if (field === "separation") return "open";
    return PARAMETERS.includes(field) && value !== null ? "open" : value;
  });
}
