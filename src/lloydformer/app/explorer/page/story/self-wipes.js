// Screen 3: residuals only add, so the old center must be taken away: that is what self-attention does.
import { badge, h } from "../dom.js";
import { Circuit } from "../interpreter/index.js";
import { dataset } from "../datasets.js";
import { StoryPlot, recipe, row, screen, tokenCells } from "./scene.js";

const LAYERS = 3;
const off = (old) => ({ rows: old.rows, cols: old.cols, data: new Float64Array(old.data.length) });

export function selfWipes() {
  const { points } = dataset("three");
  const centers = [
    [-1.2, -2.2],
    [1.2, -2.1],
    [1.6, 1.7],
  ];
  const circuit = new Circuit(recipe("lloyd"), { nFeatures: 2, nClusters: 3 });
  const traces = [{}, { "layers.*.decoder_self.output": off }].map((hooks) =>
    circuit.run(points, centers, { nLayers: LAYERS, hooks }),
  );
  const view = new StoryPlot("Centers with and without their self-attention", points, [
    [-4, -5],
    [5, 4],
  ]);
  const strips = h("div", { class: "strips" });
  const sentence = h("p", { class: "sentence", "aria-live": "polite" });
  const box = h("input", {
    type: "checkbox",
    role: "switch",
    checked: true,
    onchange: () => show(),
  });
  const groups = circuit.subspaces;

  function show() {
    const trace = traces[box.checked ? 0 : 1];
    view.show(trace, LAYERS, { glide: false });
    const token = (name) => row(trace.get(`layers.0.${name}`), 0);
    const line = (label, values, cls = "") =>
      h("div", { class: `strip ${cls}` }, h("span", {}, label), tokenCells(values, groups, 2.4));
    strips.replaceChildren(
      h(
        "div",
        { class: "strip head" },
        h("span", {}, "center ", badge(0)),
        h(
          "div",
          { class: "token" },
          groups.map(({ start, stop, name }) =>
            h(
              "div",
              { class: "group", style: `flex: ${stop - start} 1 0` },
              name === "assignment" ? "which center" : "position",
            ),
          ),
        ),
      ),
      line("its token", token("decoder_tokens")),
      line("+ self-attention", token("decoder_self.output"), box.checked ? "" : "gone"),
      line("+ cross-attention", token("decoder_cross.output")),
      line("= next token", token("decoder_next"), box.checked ? "sum" : "sum wrong"),
    );
    sentence.replaceChildren(
      ...(box.checked
        ? ["Minus the old place, plus the mean: what is left is ", h("b", {}, "the mean"), "."]
        : [h("b", {}, "Old place plus mean: "), "the centers run away."]),
    );
  }
  show();
  return screen({
    id: "self-wipes",
    number: "3",
    title: "Why self-attention erases",
    words: [
      h(
        "p",
        {},
        "A transformer only adds to its tokens. If the mean were added to the old place, the center would end up somewhere else.",
      ),
      h(
        "p",
        {},
        "So each center asks itself, and adds minus its own place. The old one is gone, the mean can be written. Points erase their old assignment in the same way.",
      ),
      h(
        "p",
        {},
        h("label", { class: "field switch" }, box, h("span", {}, "self-attention of the centers")),
      ),
      h("p", { class: "point-made" }, "Self-attention makes room."),
    ],
    figure: [strips, view.root, sentence],
    symbols: "C ← C + self(C, C) + cross(C, X)\n    C   + (−C)       + mean       = mean",
  });
}
