// The menus of the slots, and the numbers that can be set in a recipe.
import { h, labelled, select, short } from "../dom.js";
import { partAt, withPart } from "../interpreter/index.js";
import { MENU } from "../recipes.js";

const KNOBS = [
  "inverse_temperature",
  "keep",
  "temperature",
  "separation",
  "m",
  "rank",
  "within",
  "ties",
];
/** The parts as a text, whatever their numbers are. */
export const shape = (part) =>
  JSON.stringify(part, (key, value) => (KNOBS.includes(key) && value !== null ? "#" : value));
/** Whether two parts differ in their numbers only. */
export const alike = (a, b) => shape(a ?? null) === shape(b ?? null);

const slotOf = (slot) => MENU.find((one) => one.slot === slot);

const KEYS = {
  score: "Score",
  activation: "Activation",
  query: "Query",
  key: "Key",
  value: "Value",
};

/** The menu in a box of the figure: other heads, other activations, or for norm and network other parts. */
export function slotMenu(slot, recipe, onset) {
  const found = slotOf(slot);
  if (!found) return null;
  if (found.choices)
    return chooser(found.title, found.choices, recipe[slot], (part) => onset([[slot, part]]));
  const options = [
    ["", "Swap this part…"],
    ["The activation", found.parts.activation.map(({ title }, i) => [`activation ${i}`, title])],
    ["The score", found.parts.score.slice(0, 2).map(({ title }, i) => [`score ${i}`, title])],
    ["The whole head, as in", found.heads.map(({ title }, i) => [`head ${i}`, title])],
  ];
  return select(`${found.title}: swap a part`, options, (value) => {
    const [what, at] = value.split(" ");
    if (what === "head") onset([[slot, found.heads[at].part]]);
    else if (what) onset([[`${slot}.${what}`, found.parts[what][at].part]]);
  });
}

function chooser(label, options, now, onpart) {
  const at = options.findIndex(({ part }) => alike(part, now));
  const menu = select(
    label,
    [...(at < 0 ? [["-1", "as it is"]] : []), ...options.map(({ title }, i) => [String(i), title])],
    (value) => onpart(options[Number(value)].part),
  );
  menu.value = String(at);
  return menu;
}

/** Menus for score, activation, query, key and value of a head. */
export function headMenus(slot, recipe, onset) {
  const found = slotOf(slot);
  if (!found?.parts) return [];
  return Object.entries(KEYS).map(([key, title]) =>
    labelled(
      title,
      chooser(
        `${title} of the ${found.title.toLowerCase()}`,
        found.parts[key],
        recipe[slot][key],
        (part) => onset([[`${slot}.${key}`, part]]),
      ),
    ),
  );
}

/** The numbers of a recipe that can be turned: [{slot, path, title, value, least, most, scale}]. */
export function knobs(recipe) {
  return MENU.filter(({ slot, parts }) => parts && recipe[slot]).flatMap(
    ({ slot, title, parts, heads }) => {
      const head = recipe[slot];
      const option = parts.activation.find(({ part }) => alike(part, head.activation));
      const found = (option?.parameters ?? []).map((one) => ({
        ...one,
        path: `activation.${one.path}`,
      }));
      const apart = heads
        .flatMap(({ parameters }) => parameters)
        .find(({ path }) => path === "separation");
      const separated = JSON.stringify([head.query, head.key]).match(/"power":(0\.5|1)[,}]/);
      if (apart && separated) found.push(apart);
      return found
        .filter((one) => !one.choices)
        .map((one) => ({
          ...one,
          slot,
          where: title,
          value: partAt(head, one.path),
        }));
    },
  );
}

/** The recipe with a knob turned to a value. */
export const turned = (recipe, { slot, path }, value) => withPart(recipe, `${slot}.${path}`, value);

const STEPS = 200;

/** A slider for a knob; `oninput(value)`, where null means that the circuit chooses. */
export function knobSlider(knob, oninput) {
  const { least, most, scale, value, optional } = knob;
  const [low, high] = scale === "log" ? [Math.log(least), Math.log(most)] : [least, most];
  const toValue = (at) => {
    if (scale === "integer") return at;
    const raw = low + ((high - low) * at) / STEPS;
    return Number((scale === "log" ? Math.exp(raw) : raw).toPrecision(3));
  };
  const toPlace = (v) =>
    scale === "integer" ? v : (STEPS * ((scale === "log" ? Math.log(v) : v) - low)) / (high - low);
  const words = (v) => (v === null ? "auto" : short(v));
  const shown = h("output", {}, words(value));
  const range = h("input", {
    type: "range",
    min: scale === "integer" ? least : 0,
    max: scale === "integer" ? most : STEPS,
    step: 1,
    "aria-label": `${knob.title}, ${knob.where}`,
    oninput: () => {
      const v = toValue(Number(range.value));
      shown.textContent = words(v);
      range.setAttribute("aria-valuetext", words(v));
      oninput(v);
    },
  });
  range.value = value === null ? 0 : toPlace(value);
  range.setAttribute("aria-valuetext", words(value));
  const free =
    optional && value !== null
      ? h(
          "button",
          { type: "button", class: "quiet", onclick: () => oninput(null, true) },
          "let the circuit choose it (auto)",
        )
      : null;
  return h(
    "div",
    { class: "knob", "data-knob": `${knob.slot}.${knob.path}` },
    h("span", {}, knob.title),
    range,
    shown,
    free,
  );
}
