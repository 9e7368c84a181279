// The whole state of the sandbox, written into the address of the page and read from it.
import { dataset } from "./datasets.js";

export const HEADS = ["encoder_cross", "encoder_self", "decoder_cross", "decoder_self"];
const LONGEST_LINK = 30000;

export const START = {
  recipe: "lloyd",
  data: "three",
  layers: 10,
  seed: 0,
  layer: 1,
  head: "encoder_cross",
  breaks: [],
};

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What must be set in `base` to make `recipe`: [["decoder_cross.activation", part], ...]. */
export function changes(base, recipe) {
  const found = [];
  for (const slot of Object.keys(recipe)) {
    if (["name", "algorithm", "appendix", "part"].includes(slot) || same(base[slot], recipe[slot]))
      continue;
    const inside = recipe[slot]?.part === "Head" && base[slot]?.part === "Head";
    if (!inside) found.push([slot, recipe[slot]]);
    else
      for (const key of Object.keys(recipe[slot]))
        if (!same(base[slot][key], recipe[slot][key]))
          found.push([`${slot}.${key}`, recipe[slot][key]]);
  }
  return found;
}

/** The recipe with these changes; a place that does not exist is passed over. */
export function changed(base, sets) {
  const recipe = structuredClone(base);
  for (const [where, part] of sets) {
    const [slot, key] = String(where).split(".");
    if (!Object.hasOwn(recipe, slot)) continue;
    if (key === undefined) recipe[slot] = part;
    else if (recipe[slot] && Object.hasOwn(recipe[slot], key)) recipe[slot][key] = part;
  }
  return recipe;
}

const rowsToText = (rows) => rows.map((row) => row.join(",")).join(";");

function textToRows(text) {
  const rows = text
    .split(";")
    .map((row) => row.split(",").map((cell) => (cell.trim() === "" ? NaN : Number(cell))));
  const fine =
    rows.length <= 5000 &&
    rows.every((row) => row.length === rows[0].length && row.every(Number.isFinite));
  return fine ? rows : null;
}

const whole = (low, high) => (text) => {
  const value = Number(text);
  return Number.isInteger(value) && value >= low && value <= high ? value : null;
};
const parsed = (check) => (text) => {
  try {
    const found = JSON.parse(text);
    return check(found) ? found : null;
  } catch {
    return null;
  }
};

const isBreak = (one) =>
  one && typeof one === "object" && typeof one.kind === "string" && typeof one.name === "string";
const READERS = {
  recipe: (text) => (/^[a-z_]{1,40}$/.test(text) ? text : null),
  sets: parsed(
    (found) => Array.isArray(found) && found.every((one) => Array.isArray(one) && one.length === 2),
  ),
  data: (text) => (dataset(text) ? text : null),
  points: textToRows,
  centers: textToRows,
  layers: whole(1, 60),
  seed: whole(0, 2 ** 31),
  layer: whole(0, 60),
  unit: whole(0, 1),
  head: (text) => (/^[a-z_0-9]{1,40}$/.test(text) ? text : null),
  breaks: parsed((found) => Array.isArray(found) && found.every(isBreak)),
};

/** What an address holds: {found, unread}, `unread` being names of what made no sense. */
export function readHash(hash) {
  const found = {};
  const unread = [];
  if (!hash.includes("=")) return { found, unread };
  for (const [name, text] of new URLSearchParams(hash.replace(/^#/, ""))) {
    const value = Object.hasOwn(READERS, name) ? READERS[name](text) : null;
    if (value === null) unread.push(name.slice(0, 20));
    else found[name] = value;
  }
  return { found, unread };
}

/** The address for a state, without what is as at the start; null if it would be too long for a link. */
export function writeHash(state, longest = LONGEST_LINK) {
  const { recipe, base, baseName, data, points, centers, layers, seed, layer, head, breaks, unit } =
    state;
  const text = {};
  const sets = changes(base, recipe);
  text.recipe = baseName;
  if (sets.length) text.sets = JSON.stringify(sets);
  if (data) text.data = data;
  else text.points = rowsToText(points);
  if (!data || !same(dataset(data).centers, centers)) text.centers = rowsToText(centers);
  Object.assign(text, { layers, seed, layer, head });
  if (unit) text.unit = 1;
  if (breaks.length) text.breaks = JSON.stringify(breaks);
  const hash = `#${new URLSearchParams(text)}`;
  return hash.length > longest ? null : hash;
}
