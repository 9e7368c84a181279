// Screen 4: layers on top of each other are iterations.
import { h } from "../dom.js";
import { dataset } from "../datasets.js";
import { startingCenters } from "../starts.js";
import { ObjectiveChart } from "../sandbox/objective-chart.js";
import { StoryPlot, recipe, run, screen } from "./scene.js";
import { compare } from "../sandbox/comparison.js";

const LAYERS = 5;

export function stackLayers() {
  const { points } = dataset("three");
  let [centers, seed] = [
    [
      [-0.6, -1.4],
      [0.9, -2.2],
      [1.9, 0.4],
    ],
    0,
  ];
  const frames = Array.from({ length: LAYERS + 1 }, (_, t) => {
    const view = new StoryPlot(t ? `After layer ${t}` : "Start", points, centers);
    return {
      view,
      root: h(
        "figure",
        { class: "frame" },
        view.root,
        h("figcaption", {}, t ? `layer ${t}` : "start"),
      ),
    };
  });
  const chart = new ObjectiveChart();
  const sentence = h("p", { class: "sentence", "aria-live": "polite" });

  function show() {
    const trace = run(recipe("lloyd"), points, centers, { nLayers: LAYERS });
    const plain = compare({ state: { recipe: recipe("lloyd"), seed: 0 }, points, centers, trace });
    frames.forEach(({ view }, t) => view.show(trace, t, { glide: false }));
    chart.show(trace.objective, plain.objective, LAYERS);
    const apart = Math.max(...plain.apart);
    sentence.replaceChildren(
      "Circuit (line) and Lloyd's algorithm in plain code (rings). Largest difference of their centers: ",
      h("b", {}, apart === 0 ? "0" : apart.toExponential(0).replace("-", "−")),
      ".",
    );
  }
  show();
  return screen({
    id: "stack",
    number: "4",
    title: "Stack the layers",
    words: [
      h(
        "p",
        {},
        "Assign, then move: that is one layer, and it is one iteration of k-means. Put the same layer on top of itself, and the centers walk to the groups.",
      ),
      h(
        "p",
        {},
        h(
          "button",
          {
            type: "button",
            onclick: () => {
              seed += 1;
              centers = startingCenters(points, 3, seed, false);
              show();
            },
          },
          "Another start",
        ),
      ),
      h("p", { class: "point-made" }, "A layer is an iteration."),
    ],
    figure: [
      h(
        "div",
        { class: "film" },
        frames.map(({ root }) => root),
      ),
      h("div", { class: "film-chart" }, chart.svg),
      sentence,
    ],
    symbols:
      "X ← X + cross(X, C) + self(X, X)\nC ← C + cross(C, X) + self(C, C)\nthe same weights in every layer",
  });
}
