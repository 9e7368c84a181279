// The first screen: a circuit at work, beside what it is.
import { h } from "../dom.js";
import { dataset } from "../datasets.js";
import { HeatMap } from "../heatmap.js";
import { Hover } from "../hover.js";
import { clusterTriple } from "../palette.js";
import { StoryPlot, recipe, run, whileSeen } from "./scene.js";

const LAYERS = 5;

export function hero() {
  const { points } = dataset("three");
  const trace = run(
    recipe("lloyd"),
    points,
    [
      [-1.6, -2.6],
      [-0.6, -2.9],
      [2.9, 0.6],
    ],
    { nLayers: LAYERS },
  );
  const hover = new Hover();
  const view = new StoryPlot(
    "A transformer clusters points, layer by layer",
    points,
    trace.centers[0].map((c) => [...c]),
  );
  const map = new HeatMap({ title: "Attention", hover, rows: "point", columns: "center" });
  const caption = h("p", { class: "layer-name" });
  hover.listen((seen) => view.plot.light(seen?.kind, seen?.index));
  let layer = LAYERS;
  const show = () => {
    view.show(trace, layer);
    map.show(trace.get(`layers.${Math.max(0, layer - 1)}.encoder_cross.attention`), {
      tint: (i, j) => clusterTriple(j),
    });
    map.root.style.opacity = layer ? 1 : 0.15;
    caption.textContent = layer ? `layer ${layer}` : "start";
  };
  show();
  const figure = h("div", { class: "hero-figure" }, view.root, map.root, caption);
  whileSeen(
    figure,
    () => {
      layer = (layer + 1) % (LAYERS + 1);
      show();
    },
    1300,
  );
  return h(
    "section",
    { class: "hero" },
    h(
      "div",
      { class: "words" },
      h("h1", {}, "Watch a transformer cluster"),
      h(
        "p",
        { class: "lead" },
        "Nobody trained this transformer. Its weights are written by hand, so that each layer is exactly one iteration of k-means.",
      ),
      h(
        "p",
        {},
        "See what every part does, swap one and get another algorithm, or break one and find out what it was for.",
      ),
      h(
        "p",
        { class: "buttons" },
        h(
          "a",
          { class: "button primary", href: "#point-asks", "data-to": "point-asks" },
          "Start the story",
        ),
        h(
          "a",
          { class: "button", href: "#sandbox", "data-to": "sandbox" },
          "Straight to the sandbox",
        ),
      ),
    ),
    figure,
  );
}
