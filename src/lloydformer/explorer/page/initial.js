// The state to begin with: from the address, from the page (lloydformer explore), or the usual one.
import { dataset } from "./datasets.js";
import { RECIPES } from "./recipes.js";
import { START, changed, readHash } from "./state.js";

const isRows = (rows, d) => Array.isArray(rows) && rows.length > 0 && rows.every((row) =>
  Array.isArray(row) && row.length === (d ?? rows[0].length) && row.every(Number.isFinite));

function embedded() {
  try { return JSON.parse(document.getElementById("initial-state")?.textContent || "{}") ?? {}; } catch { return {}; }
}

/** {state, shared, unread}: `shared` tells whether the address held a state. */
export function initialState() {
  const { found, unread } = readHash(location.hash);
  const given = embedded();
  const state = { ...START, ...found, breaks: found.breaks ?? [] };
  const points = found.points ?? (found.data ? null : given.points ?? null);
  if (isRows(points)) Object.assign(state, { data: null, points });
  else Object.assign(state, dataset(state.data));
  const centers = found.centers ?? (points === given.points ? given.centers : null);
  if (isRows(centers, state.points[0].length)) state.centers = centers;
  if (!state.centers || state.centers[0].length !== state.points[0].length) state.centers = state.points.slice(0, 3);
  return { state: { ...state, ...recipes(found, given) }, shared: Object.keys(found).length > 0, unread };
}

function recipes(found, given) {
  const own = !found.recipe && given.recipe?.part === "Recipe" ? given.recipe : null;
  const known = RECIPES.find((one) => one.live && one.name === (found.recipe ?? own?.name)) ?? RECIPES[0];
  const recipe = own ?? (found.sets ? changed(known.recipe, found.sets) : known.recipe);
  return { recipe, base: known.recipe, baseName: known.name, unit: known.needsUnitVectors };
}
