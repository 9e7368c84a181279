// After the story: experiments that open in the sandbox with one press.
import { h } from "../dom.js";
import { withPart } from "../interpreter/index.js";
import { switchedOff } from "../sandbox/breaks.js";
import { recipe } from "./scene.js";

const softened = (gamma) =>
  withPart(recipe("soft"), "encoder_cross.activation.inverse_temperature", gamma);
const SOFTMAX = { part: "Softmax", inverse_temperature: 1 };

const EXPERIMENTS = () => [
  [
    "Make Lloyd fail",
    "Two centers in one group, one center for two. Press Play: it stays so.",
    { name: "lloyd", data: "trapped", layer: 0, head: "encoder_cross" },
  ],
  [
    "Repair it with one part",
    "The same start, with soft-max in place of limiting soft-max: a center escapes.",
    {
      name: "lloyd",
      recipe: withPart(recipe("lloyd"), "encoder_cross.activation", SOFTMAX),
      data: "trapped",
      layer: 0,
      head: "encoder_cross",
    },
  ],
  [
    "Drop the outliers",
    "Trimmed k-means. Turn “Fraction kept” and see which points become rings.",
    {
      name: "trimmed",
      recipe: withPart(recipe("trimmed"), "decoder_cross.activation.keep", 0.85),
      data: "outliers",
      layer: 8,
      head: "decoder_cross",
    },
  ],
  [
    "Break a head",
    "The decoder's self-attention is off. Which lines of the algorithm no longer hold?",
    {
      name: "lloyd",
      data: "three",
      breaks: [switchedOff("decoder_self")],
      layer: 3,
      head: "decoder_self",
    },
  ],
  [
    "Melt the assignment",
    "Soft k-means with a low γ: all centers fall into the middle. Turn γ up.",
    { name: "soft", recipe: softened(0.12), data: "three", layer: 10, head: "encoder_cross" },
  ],
  [
    "Let the medoids jump",
    "Every center is one of the points, drawn again in each layer. Change the seed.",
    { name: "medoids", data: "three", layer: 4, head: "decoder_cross" },
  ],
];

export function experiments(onopen) {
  return h(
    "section",
    { class: "experiments", "aria-labelledby": "try-title" },
    h("h2", { id: "try-title" }, "Now you: six things to try"),
    h(
      "div",
      { class: "cards" },
      EXPERIMENTS().map(([title, about, what]) =>
        h(
          "button",
          { type: "button", class: "card", onclick: () => onopen(what) },
          h("b", {}, title),
          h("span", {}, about),
        ),
      ),
    ),
  );
}
