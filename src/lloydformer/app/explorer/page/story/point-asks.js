// Screen 1: a point asks the centers, and attention is assignment.
import { badge, h, short } from "../dom.js";
import { withPart } from "../interpreter/index.js";
import { clusterColour } from "../palette.js";
import { StoryPlot, recipe, row, run, screen } from "./scene.js";

const POINTS = [
  [0.35, 0.3],
  [-2.1, -0.7],
  [-1.6, -1.2],
  [-2.3, -1.5],
  [-1.7, -0.4],
  [2.0, -0.8],
  [1.6, -1.3],
  [2.4, -1.2],
  [1.9, -0.3],
  [0.1, 1.9],
  [-0.4, 1.6],
  [0.5, 1.5],
  [0.3, 2.3],
];
const CENTERS = [
  [-1.5, -0.5],
  [1.4, -0.9],
  [-0.2, 1.2],
];
const HARD = 60; // the last place of the slider: no temperature at all

/** A recipe that is as sharp as the slider says. */
function sharpness(at) {
  if (at >= HARD) return { gamma: Infinity, json: recipe("lloyd") };
  const gamma = 0.05 * 400 ** (at / HARD);
  return {
    gamma,
    json: withPart(recipe("soft"), "encoder_cross.activation.inverse_temperature", gamma),
  };
}

export function pointAsks() {
  const points = POINTS.map((p) => [...p]);
  const view = new StoryPlot("A point asks three centers; drag the point", points, [
    [-2.6, -2],
    [2.6, 2.6],
  ]);
  const { plot } = view;
  const bars = h("div", { class: "bars" });
  const slider = h("input", {
    type: "range",
    min: 0,
    max: HARD,
    value: HARD,
    "aria-label": "Sharpness",
    oninput: () => show(),
  });
  const sharp = h("output", {});
  const sentence = h("p", { class: "sentence", "aria-live": "polite" });

  function show() {
    const { gamma, json } = sharpness(Number(slider.value));
    const trace = run(json, points, CENTERS, { nLayers: 1 });
    const [attention, scores] = ["attention", "scores"].map((name) =>
      row(trace.get(`layers.0.encoder_cross.${name}`), 0),
    );
    view.show(trace, 1, { glide: false, trails: false });
    plot.showCenters(CENTERS.map((c) => [c]));
    plot.showRegions(CENTERS, Number.isFinite(gamma) ? null : "Euclidean");
    plot.showRays(
      attention.map((weight, j) => ({
        from: points[0],
        to: CENTERS[j],
        weight,
        top: 1,
        colour: clusterColour(j),
      })),
    );
    plot.points[0].setAttribute("r", 9);
    plot.points[0].classList.add("lit");
    sharp.textContent = Number.isFinite(gamma) ? `γ = ${short(gamma, 2)}` : "γ = ∞";
    slider.setAttribute("aria-valuetext", sharp.textContent);
    bars.replaceChildren(...attention.map((weight, j) => bar(j, scores[j], weight)));
    const best = attention.indexOf(Math.max(...attention));
    sentence.replaceChildren(
      ...(Number.isFinite(gamma)
        ? ["The point is shared by the centers."]
        : [
            "All weight is on center ",
            badge(best),
            ", the nearest: the point is ",
            h("b", {}, "assigned"),
            ".",
          ]),
    );
  }

  dragged(plot, (place) => {
    points[0] = place;
    show();
  });
  show();
  return screen({
    id: "point-asks",
    number: "1",
    title: "A point asks the centers",
    words: [
      h(
        "p",
        {},
        "Drag the large point. It asks every center: how near are you? The nearer a center, the higher its score.",
      ),
      h(
        "p",
        {},
        "Attention turns the scores into weights that sum to one. Make it sharper, and the nearest center takes all.",
      ),
      h(
        "div",
        { class: "knob wide-knob" },
        h("span", {}, "soft"),
        slider,
        h("span", {}, "sharp"),
        sharp,
      ),
      h("p", { class: "point-made" }, "Attention is assignment."),
    ],
    figure: [view.root, bars, sentence],
    symbols:
      "score of point x and center c     a = −|x − c|²\nweights of its scores             w = softmax(γ a),  γ → ∞\nthe point is the query, the centers are the keys",
  });
}

function bar(j, score, weight) {
  return h(
    "div",
    { class: "bar" },
    h("span", { class: "who" }, "center ", badge(j)),
    h("span", { class: "score" }, `score ${short(score, 2)}`),
    h(
      "span",
      { class: "track" },
      h("i", { style: `width:${100 * weight}%;background:${clusterColour(j)}` }),
    ),
    h("output", {}, `${Math.round(100 * weight)} %`),
  );
}

/** The large point goes where the pointer drags it, or the arrow keys. */
function dragged(plot, onplace) {
  const { svg } = plot;
  let held = false;
  svg.setAttribute("tabindex", 0);
  svg.setAttribute("role", "group");
  svg.addEventListener("pointerdown", (event) => {
    held = true;
    svg.setPointerCapture(event.pointerId);
    onplace(plot.place(event));
  });
  svg.addEventListener("pointermove", (event) => {
    if (held) onplace(plot.place(event));
  });
  svg.addEventListener("pointerup", () => {
    held = false;
  });
  svg.addEventListener("keydown", (event) => {
    const step = {
      ArrowUp: [0, 0.15],
      ArrowDown: [0, -0.15],
      ArrowLeft: [-0.15, 0],
      ArrowRight: [0.15, 0],
    }[event.key];
    if (!step) return;
    event.preventDefault();
    const dot = plot.points[0];
    const [x, y] = ["cx", "cy"].map((name) => Number(dot.getAttribute(name)));
    const place = [
      plot.middle[0] + (x - 200) / plot.scale,
      plot.middle[1] - (y - 200) / plot.scale,
    ];
    onplace(place.map((value, axis) => value + step[axis]));
  });
}
