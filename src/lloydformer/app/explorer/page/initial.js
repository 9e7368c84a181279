// The state to begin with: from the address, from the page (lloydformer explore), or the usual one.
import { dataset } from "./datasets.js";
import { RECIPES } from "./recipes.js";
import { START, changed, readHash } from "./state.js";

const isRows = (rows, d) =>
  Array.isArray(rows) &&
  rows.length > 0 &&
  rows.every(
    (row) =>
      Array.isArray(row) && row.length === (d ?? rows[0].length) && row.every(Number.isFinite),
  );

function embedded() {
  try {
    return JSON.parse(document.getElementById("initial-state")?.textContent || "{}") ?? {};
  } catch {
    return {};
  }
}

/**
 * {state, own, unread}: `own` tells whether the address held a state, or the page has points or a
 * recipe of the user, which the sandbox shows and the story does not.
 */
export function initialState() {
  const given = embedded();
  const { found, unread } = readHash(
    location.hash.includes("=") ? location.hash : String(given.address ?? ""),
  );
  const state = { ...START, ...found, breaks: found.breaks ?? [] };
  const points = found.points ?? (found.data ? null : (given.points ?? null));
  if (isRows(points)) Object.assign(state, { data: null, points });
  else Object.assign(state, dataset(state.data));
  const centers = found.centers ?? (points === given.points ? given.centers : null);
  if (isRows(centers, state.points[0].length)) state.centers = centers;
  if (!state.centers || state.centers[0].length !== state.points[0].length)
    state.centers = state.points.slice(0, 3);
  return {
    state: { ...state, ...recipes(found, given, unread) },
    own: Object.keys(found).length > 0 || state.data === null || given.recipe !== undefined,
    unread,
  };
}

/** Whether the parts are where the figure looks for them; if they fit together, the circuit says. */
function isDrawable(recipe) {
  const isHead = (head) =>
    head?.part === "Head" &&
    head.score?.part &&
    head.activation?.part &&
    Array.isArray(head.beside) &&
    ["query", "key", "value"].every((name) => head[name]?.part);
  return (
    ["encoder_cross", "encoder_self", "decoder_cross", "decoder_self"].every((slot) =>
      isHead(recipe[slot]),
    ) &&
    (recipe.affinity === null || isHead(recipe.affinity)) &&
    [recipe.norm, recipe.feedforward].every((part) => part === null || part?.part) &&
    Array.isArray(recipe.tokens?.subspaces) &&
    recipe.tokens.subspaces.every(
      (space) => typeof space?.name === "string" && typeof space.symbol === "string",
    )
  );
}

function recipes(found, given, unread) {
  const own = !found.recipe && given.recipe?.part === "Recipe" ? given.recipe : null;
  const known =
    RECIPES.find((one) => one.live && one.name === (found.recipe ?? own?.name)) ?? RECIPES[0];
  const wanted = own ?? changed(known.recipe, found.sets ?? []);
  if (!isDrawable(wanted)) unread.push("recipe");
  const recipe = isDrawable(wanted) ? wanted : known.recipe;
  return {
    recipe,
    base: known.recipe,
    baseName: known.name,
    unit: found.unit === undefined ? known.needsUnitVectors : found.unit === 1,
  };
}
