// Builds elements. Text always goes in as text, never as markup.
import { clusterColour, inkOn } from "./palette.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** An HTML element: h("button", { onclick: f, class: "quiet" }, "Play"). */
export const h = (name, attributes = {}, ...children) =>
  fill(document.createElement(name), attributes, children);

/** An SVG element. */
export const s = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

export const set = (element, attributes) => fill(element, attributes, []);

/** A control with its visible label. */
export const labelled = (text, control, ...more) =>
  h("label", { class: "field" }, h("span", {}, text), control, ...more);

/** A menu of [value, text] pairs, or of [group, pairs]. */
export function select(label, options, onchange) {
  const option = ([value, text]) => h("option", { value }, text);
  const items = options.map(([name, inside]) =>
    Array.isArray(inside)
      ? h("optgroup", { label: name }, inside.map(option))
      : option([name, inside]),
  );
  return h(
    "select",
    { "aria-label": label, onchange: (event) => onchange(event.target.value) },
    items,
  );
}

/** Choices of which one is pressed, as a row of buttons. */
export function choices(label, options, chosen, onchoose) {
  const buttons = options.map(([value, text, title]) =>
    h(
      "button",
      {
        type: "button",
        title,
        "data-value": value,
        "aria-pressed": String(value === chosen),
        onclick: () => {
          press(value);
          onchoose(value);
        },
      },
      text,
    ),
  );
  const press = (value) =>
    buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.value === value)));
  return Object.assign(
    h("div", { class: "choices", role: "group", "aria-label": label }, buttons),
    { press },
  );
}

/** The number of a center (or any number of a cluster) on the cluster's colour. */
export const badge = (j) =>
  h(
    "span",
    { class: "badge", style: `background:${clusterColour(j)};color:${inkOn(j)}` },
    String(j + 1),
  );

/** A number with about `digits` digits, without noise such as 1.2e+0. */
export function short(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "not a number" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5)
    return value
      .toExponential(Math.min(1, digits - 1))
      .replace("e", "e")
      .replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

/** Builds the inside of an element anew; the control that had the focus has it again. */
export function rebuilt(element, build) {
  const controls = () => [...element.querySelectorAll("button, select, input, [tabindex]")];
  const at = controls().indexOf(document.activeElement);
  build();
  if (at >= 0) controls()[Math.min(at, controls().length - 1)]?.focus({ preventScroll: true });
}
