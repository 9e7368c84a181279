// What all screens of the story share: words on one side, a live figure on the other.
import { h } from "../dom.js";
import { Circuit } from "../interpreter/index.js";
import { Plot } from "../plot.js";
import { mixed } from "../palette.js";
import { RECIPES } from "../recipes.js";

export const recipe = (name) => RECIPES.find((one) => one.name === name).recipe;

/** Runs a recipe in two dimensions. */
export function run(json, points, centers, options = {}) {
  const circuit = new Circuit(json, { nFeatures: 2, nClusters: centers.length });
  return circuit.run(points, centers, { nLayers: 6, seed: 0, ...options });
}

export const row = (matrix, i) => [...matrix.data.subarray(i * matrix.cols, (i + 1) * matrix.cols)];

/** A screen: {number, title, words: [nodes], figure: node, symbols: text}. */
export function screen({ id, number, title, words, figure, symbols }) {
  return h(
    "section",
    { class: "screen", id, "aria-labelledby": `${id}-title` },
    h(
      "div",
      { class: "words" },
      h("p", { class: "number", "aria-hidden": "true" }, number),
      h("h2", { id: `${id}-title` }, title),
      words,
      symbols
        ? h(
            "details",
            { class: "symbols" },
            h("summary", {}, "In symbols"),
            h("pre", { tabindex: 0 }, symbols),
          )
        : null,
    ),
    h("div", { class: "figure" }, figure),
  );
}

/** A plot of one layer of a trace: points by their shares, centers with their way. */
export class StoryPlot {
  constructor(label, points, centers) {
    this.plot = new Plot(label);
    this.points = points;
    this.plot.fit([...points, ...centers]);
    this.root = this.plot.root;
  }

  show(trace, layer, { glide = true, score = "Euclidean", counts = null, trails = true } = {}) {
    this.plot.glide(glide);
    const shares = layer > 0 ? trace.assignments[layer - 1] : null;
    const colours = this.points.map((_, i) => {
      const found = shares && mixed(shares[i]);
      return found ? `rgb(${found})` : null;
    });
    this.plot.showPoints(this.points, colours, counts);
    const history = trace.centers.slice(trails ? 0 : layer, layer + 1);
    this.plot.showCenters(history[0].map((_, j) => history.map((centers) => [...centers[j]])));
    const before = trace.centers[Math.max(0, layer - 1)].map((c) => [...c]);
    this.plot.showRegions(shares && score ? before : [], shares ? score : null);
  }
}

/** Calls `tick` again and again while the element is on the screen and things may move. */
export function whileSeen(element, tick, every) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let seen = false;
  new IntersectionObserver(
    ([entry]) => {
      seen = entry.isIntersecting;
    },
    { threshold: 0.2 },
  ).observe(element);
  setInterval(() => {
    const motion = document.documentElement.dataset.motion;
    if (seen && !document.hidden && (motion ? motion === "on" : !calm.matches)) tick();
  }, every);
}

/** Cells of a token, with numbers: strong colours are large numbers, blue positive and brown negative. */
export function tokenCells(values, groups, top) {
  const cell = (value) => {
    const share = Math.round(100 * Math.min(1, Math.abs(value) / top) * 0.55);
    const text =
      Math.abs(value) < 5e-3
        ? "0"
        : value.toFixed(Number.isInteger(value) ? 0 : 2).replace("-", "−");
    return h(
      "span",
      {
        style: `background: color-mix(in srgb, var(${value < 0 ? "--minus" : "--plus"}) ${share}%, var(--paper))`,
      },
      text,
    );
  };
  return h(
    "div",
    { class: "token" },
    groups.map(({ start, stop, name }) =>
      h(
        "div",
        { class: "group", style: `flex: ${stop - start} 1 0`, title: name },
        values.slice(start, stop).map(cell),
      ),
    ),
  );
}
