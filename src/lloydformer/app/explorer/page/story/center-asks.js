// Screen 2: a center asks its points, and gets their mean.
import { badge, choices, h } from "../dom.js";
import { dataset } from "../datasets.js";
import { HeatMap } from "../heatmap.js";
import { Hover } from "../hover.js";
import { clusterColour, clusterTriple } from "../palette.js";
import { StoryPlot, recipe, row, run, screen } from "./scene.js";

const CENTERS = [
  [-0.9, -2],
  [1.0, -0.2],
  [-0.9, 1.4],
];

export function centerAsks() {
  const points = dataset("three").points.filter((_, i) => i % 2 === 0);
  const trace = run(recipe("lloyd"), points, CENTERS, { nLayers: 1 });
  const weights = trace.get("layers.0.decoder_cross.attention");
  const view = new StoryPlot("A center asks its points", points, CENTERS);
  const hover = new Hover();
  const map = new HeatMap({
    title: "Attention of the centers (rows) to the points (columns)",
    hover,
    rows: "center",
    columns: "point",
  });
  const sentence = h("p", { class: "sentence", "aria-live": "polite" });
  let [asking, moved] = [0, false];

  function show(glide) {
    view.show(trace, 1, { glide, trails: false });
    view.plot.showCenters(CENTERS.map((c, j) => (moved ? [c, [...trace.centers[1][j]]] : [c])));
    const mine = row(weights, asking);
    view.plot.showRays(
      mine.map((weight, i) => ({
        from: moved ? trace.centers[1][asking] : CENTERS[asking],
        to: points[i],
        weight,
        colour: clusterColour(asking),
      })),
    );
    map.show(weights, { tint: (j) => clusterTriple(j) });
    const count = mine.filter((weight) => weight > 0).length;
    sentence.replaceChildren(
      "Center ",
      badge(asking),
      ` has ${count} points. Each gets the weight 1/${count}, the others 0: the answer is their `,
      h("b", {}, "mean"),
      ".",
    );
    move.textContent = moved ? "Put them back" : "Move all centers to the answers";
  }
  const move = h("button", {
    type: "button",
    class: "primary",
    onclick: () => {
      moved = !moved;
      show(true);
    },
  });
  const pick = choices(
    "Which center asks",
    CENTERS.map((_, j) => [String(j), `Center ${j + 1}`]),
    "0",
    (j) => {
      asking = Number(j);
      hover.look({ kind: "center", index: asking });
      show(false);
    },
  );
  hover.listen((seen) => view.plot.light(seen?.kind, seen?.index));
  view.plot.svg.addEventListener("click", (event) => {
    const mark = event.target.closest("[data-center]");
    if (mark) {
      asking = Number(mark.dataset.center);
      pick.press(String(asking));
      show(false);
    }
  });
  show(false);
  return screen({
    id: "center-asks",
    number: "2",
    title: "A center asks its points",
    words: [
      h(
        "p",
        {},
        "Now the roles are swapped. A center asks every point: are you mine? Its points say yes, all with the same weight.",
      ),
      h("p", {}, pick),
      h("p", {}, move),
      h("p", { class: "point-made" }, "The answer is the mean, and the center moves there."),
    ],
    figure: [view.root, h("div", { class: "strip-map" }, map.root), sentence],
    symbols:
      "score of center j and point i     b = ⟨e_j, y_i⟩ = 1 if i belongs to j, else 0\nweights                            limiting soft-max: 1/m for each of its m points\nanswer                             Σ w_i x_i = mean of the cluster",
  });
}
