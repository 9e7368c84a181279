/** Recipes: one layer as a value (JSON), and the reasons why parts do not fit together. */

import { ACTIVATIONS, forwardOf } from "./activations.js";
import { checkQuadratic, QUADRATIC_SUBSPACES } from "./feedforward.js";
import { checkHead, headNumbers, headSubspaces, isFree, isSeparated } from "./heads.js";
import { checkFixed, kindsOf } from "./modulation.js";
import { NORMS } from "./norms.js";
import { comparesCodes } from "./outside.js";
import { PARTS } from "./parts.js";
import { checkProjection, subspacesOf } from "./projections.js";
import { listText, quoted } from "./python_text.js";
import { Refusal } from "./refusal.js";
import { SCORES } from "./scores.js";
import { CODES } from "./tokens.js";

const SLOTS = ["encoder_cross", "encoder_self", "affinity", "decoder_cross", "decoder_self"];

const CHECKS = {
  Recipe: checkRecipe,
  Head: checkHead,
  Projection: checkProjection,
  Quadratic: checkQuadratic,
  Fixed: checkFixed,
  ...Object.fromEntries(Object.entries(ACTIVATIONS).map(([name, part]) => [name, part.check])),
};

/**
 * Parts that only recipes of several sub-layers, of mixtures, of bounded sizes and of tables have.
 * The page does not run those; it shows recorded traces of the first.
 */
export const NOT_LIVE = ["Perceptron", "Product", "Difference", "Staged", "Sublayer", "Stage",
  "Read", "Counts", "PairedCounts", "MixtureKind", "MixtureTokens", "NaturalParameters",
  "LimitingSinkhorn", "Sinkhorn", "MaskedTokens", "CoordinateMeans", "BlockArgmax"];

/** The names of all parts that this interpreter runs. */
export const LIVE = [
  "Recipe", "Tokens", "Subspace", "Head", "Projection", "Block", "Average", "Number", "Dense",
  "Quadratic", "Fixed", ...Object.keys(CODES), ...Object.keys(SCORES), ...Object.keys(NORMS),
  ...Object.keys(ACTIVATIONS),
];

/**
 * Check the JSON of a recipe, or of a list of recipes, and return it.
 * @throws {Refusal} in Python's words, if a part is unknown or the parts do not fit together
 */
export function recipeFromJson(found) {
  if (Array.isArray(found)) found.forEach(recipeFromJson);
  if (Array.isArray(found) || found === null || typeof found !== "object") return found;
  const { part, ...fields } = found;
  if (!(part in PARTS)) {
    throw new Refusal(
      `found part ${part === undefined ? "None" : quoted(String(part))}; known parts are ` +
        Object.keys(PARTS).join(", "));
  }
  Object.values(fields).forEach(recipeFromJson);
  const [has, expected] = [Object.keys(fields).sort(), Object.keys(PARTS[part])];
  if (has.join() !== [...expected].sort().join()) {
    throw new Refusal(`${part}: found fields ${listText(has)}; expected ${listText(expected)}`);
  }
  if (NOT_LIVE.includes(part)) {
    throw new Refusal(`recipe: found ${part}; this page shows it as a recorded trace only`);
  }
  CHECKS[part]?.(found);
  return found;
}

/** The heads of each slot that is used: [slot, [[name, head], ...]], in Python's order. */
export function slotsOf(recipe) {
  return SLOTS.filter((slot) => recipe[slot]).map((slot) => [slot, namedHeads(slot, recipe[slot])]);
}

function namedHeads(slot, head) {
  return [[slot, head], ...head.beside.map((other, i) => [`${slot}_${i + 1}`, other])];
}

/** All heads by name. @returns {[string, object][]} */
export function headsOf(recipe) {
  return slotsOf(recipe).flatMap(([, heads]) => heads);
}

/** The rule for tied points, "first" or "average"; null if assignments are soft. */
export function tiesOf(recipe) {
  return forwardOf(recipe.encoder_cross.activation).ties ?? null;
}

/** Whether some of the matrices are learned. */
export function isLearned(recipe) {
  return headsOf(recipe).some(([, head]) => isFree(head));
}

/** Whether results move along with the data; a circuit then centers the data. */
export function isTranslationInvariant(recipe) {
  if (isLearned(recipe) || recipe.norm) return false;
  return headsOf(recipe).map(([, head]) => [head, subspacesOf(head.query)]).every(
    ([head, read]) =>
      !read.has("position") || head.score.part === "Euclidean" || read.has("squared_norm"));
}

/** The head that keeps clusters apart by the separation, if there is one. */
export function separatedHead(recipe) {
  return headsOf(recipe).map(([, head]) => head).find(isSeparated);
}

/** The paper's delta for a layer: the one given, or a value near its lower bound. */
export function separationOf(recipe, reach, nClusters) {
  const head = separatedHead(recipe);
  if (!head) return 0;
  if (head.separation !== null) return head.separation;
  const activation = forwardOf(recipe.decoder_cross.activation);
  const lowering = ACTIVATIONS[activation.part].lowering(activation, reach);
  return tiesOf(recipe) === "average" ? lowering * nClusters ** 2 : lowering / 2;
}

/** How far below a cluster's best score the scores of its own points can be. */
export function gapOf(recipe, separation, nClusters) {
  if (!separatedHead(recipe)) return Infinity;
  return tiesOf(recipe) === "average" ? separation / (2 * nClusters ** 2) : separation;
}

function checkRecipe(recipe) {
  for (const [slot, reason] of problems(recipe)) {
    throw new Refusal(`${slot}: ${reason} (in recipe ${quoted(recipe.name)})`);
  }
}

/** Every reason why the parts do not fit together, with the slot to change. */
function* problems(recipe) {
  const has = new Set(recipe.tokens.subspaces.map(({ name }) => name));
  const missing = (used) => [...used].filter((name) => !has.has(name)).sort();
  for (const [slot, head] of headsOf(recipe)) yield* headProblems(recipe, slot, head, missing);
  const wanted = missing(recipe.numbers ? ["nearest", "second"] : []);
  if (wanted.length) {
    yield ["numbers", `they write ${wanted.join(", ")}, which these tokens do not have`];
  }
  if (has.has("squared_norm") && !recipe.feedforward) {
    yield ["feedforward", "lifted tokens need one, which updates their squared norm"];
  }
  const written = missing(recipe.feedforward ? QUADRATIC_SUBSPACES : []);
  if (written.length) {
    yield ["feedforward",
      `it writes ${written.join(", ")}, which these tokens do not have; use lifted tokens`];
  }
  if (recipe.tokens.codes.part === "Binary" && !isLearned(recipe)) yield* binaryProblems(recipe);
}

function* headProblems(recipe, slot, head, missing) {
  const names = missing(headSubspaces(head));
  if (names.length) {
    yield [slot, `it uses ${names.join(", ")}, which these tokens do not have; use lifted tokens`];
  }
  const activation = forwardOf(head.activation);
  const apart = isSeparated(head) || subspacesOf(head.key).has("affinity");
  if (activation.part === "Linear" && apart) {
    yield [slot, "linear attention cannot keep clusters apart; use soft-max"];
  }
  if (activation.part === "Gumbel" && !SLOTS.includes(slot)) {
    yield [slot, "only the first head of a slot can draw noise; use another activation"];
  }
  const set = recipe.numbers ? kindsOf(recipe.numbers) : {};
  const open = [...new Set(headNumbers(head).map((n) => n.kind).filter((kind) => !(kind in set)))];
  if (open.length) {
    yield [slot,
      `no part sets its numbers ${listText(open.sort())}; pass numbers= that does`];
  }
}

/** Binary codes can only be compared for equality. */
function* binaryProblems(recipe) {
  const isLimit = (part, ties) => part.part === "LimitingSoftmax" && part.ties === ties;
  if (!isLimit(forwardOf(recipe.encoder_cross.activation), "first")) {
    yield ["encoder_cross",
      "binary codes cannot hold a point shared by two clusters (averaged codes collide); " +
        'use LimitingSoftmax(ties="first") or one-hot codes'];
  }
  const cross = recipe.decoder_cross;
  if (!comparesCodes(cross) || !isLimit(forwardOf(cross.activation), "average")) {
    yield ["decoder_cross",
      "binary codes can be distinguished only by limiting soft-max of their dot product; " +
        "use one-hot codes"];
  }
}
