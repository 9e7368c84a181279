// Screen 5: another part, another algorithm.
import { choices, h } from "../dom.js";
import { dataset } from "../datasets.js";
import { withPart } from "../interpreter/index.js";
import { alike } from "../sandbox/menus.js";
import { activationWords, headWords, scoreWords } from "../sandbox/words.js";
import { StoryPlot, recipe, run, screen } from "./scene.js";

const keep = (json) => withPart(json, "decoder_cross.activation.keep", 0.85);
const OPTIONS = {
  lloyd: ["Lloyd", "The outliers drag centers away from the groups.", (json) => json],
  trimmed: [
    "Trimmed",
    "The farthest points of each group (rings) get no weight: outliers drop out.",
    keep,
  ],
  robust: [
    "Robust",
    "The farther a point, the less it counts, down to nothing.",
    (json) => withPart(json, "decoder_cross.activation.inverse_temperature", 0.02),
  ],
  soft: [
    "Soft",
    "Every point is shared by all centers: colours mix.",
    (json) => withPart(json, "encoder_cross.activation.inverse_temperature", 0.6),
  ],
  medoids: [
    "Medoids",
    "One point of each group is drawn as its center: centers jump.",
    (json) => json,
  ],
};
const SLOTS = ["encoder_cross", "encoder_self", "decoder_cross", "decoder_self"];
const LAYERS = 8;

export function swapPart(onopen) {
  const { points, centers } = dataset("outliers");
  const view = new StoryPlot("The same points with another part in the layer", points, centers);
  const slots = h("ul", { class: "slots" });
  const sentence = h("p", { class: "sentence", "aria-live": "polite" });
  let chosen = "lloyd";

  function show(name) {
    chosen = name;
    const json = OPTIONS[name][2](recipe(name));
    const trace = run(json, points, centers, { nLayers: LAYERS });
    view.show(trace, LAYERS, { glide: true, counts: counted(trace) });
    slots.replaceChildren(
      ...SLOTS.map((slot) => {
        const other = !alike(json[slot], recipe("lloyd")[slot]);
        return h(
          "li",
          { class: other ? "other" : "" },
          h("span", {}, headWords(slot).title),
          h("b", {}, `${scoreWords(json[slot].score)} → ${activationWords(json[slot].activation)}`),
          other ? h("em", {}, "swapped") : null,
        );
      }),
    );
    sentence.textContent = OPTIONS[name][1];
  }
  const pick = choices(
    "Which part",
    Object.entries(OPTIONS).map(([name, [title]]) => [name, title]),
    "lloyd",
    show,
  );
  show("lloyd");
  return screen({
    id: "swap",
    number: "5",
    title: "Swap a part",
    words: [
      h(
        "p",
        {},
        "Every part of the layer can be replaced: the score, the activation, a norm, a small network. Take another activation, and another algorithm runs on the same points.",
      ),
      h("p", {}, pick),
      slots,
      h("p", { class: "point-made" }, "Another part is another algorithm."),
      h(
        "p",
        {},
        h(
          "button",
          {
            type: "button",
            class: "primary",
            onclick: () =>
              onopen({
                name: chosen,
                recipe: OPTIONS[chosen][2](recipe(chosen)),
                data: "outliers",
                layer: LAYERS,
                head: "decoder_cross",
              }),
          },
          "Open it in the sandbox",
        ),
      ),
    ],
    figure: [view.root, sentence],
  });
}

/** How much each point counts for its center in the last layer. */
function counted(trace) {
  const map = trace.get(`layers.${LAYERS - 1}.decoder_cross.attention`);
  const tops = Array.from({ length: map.rows }, (_, j) =>
    Math.max(...map.data.subarray(j * map.cols, (j + 1) * map.cols)),
  );
  return Array.from({ length: map.cols }, (_, i) =>
    Math.max(...tops.map((top, j) => (top > 0 ? map.data[j * map.cols + i] / top : 0))),
  );
}
