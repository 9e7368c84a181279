// Starts the page: the story, then the sandbox.
import { dataset } from "./datasets.js";
import { initialState } from "./initial.js";
import { preferences } from "./preferences.js";
import { RECIPES } from "./recipes.js";
import { Model } from "./sandbox/model.js";
import { Sandbox } from "./sandbox/sandbox.js";
import { showRecorded } from "./story/recorded.js";
import { tellStory } from "./story/story.js";

const { state, own, unread } = initialState();
const model = new Model(state);
const sandbox = new Sandbox(document.getElementById("sandbox-root"), model);
/** Opens an experiment in the sandbox: {name, recipe?, data, ...what else is to be set}. */
function open({ name, recipe, data, ...rest }) {
  const { recipe: base, needsUnitVectors: unit } = RECIPES.find((one) => one.name === name);
  model.change({
    recipe: recipe ?? base,
    base,
    baseName: name,
    unit,
    data,
    ...dataset(data),
    breaks: [],
    layers: 10,
    ...rest,
  });
  sandbox.plot.fit();
  sandbox.plot.show(false);
  document.getElementById("sandbox").scrollIntoView();
}

tellStory(document.getElementById("story-root"), open);
showRecorded(document.getElementById("recorded-root"));
preferences(document.querySelector(".top .preferences"));

document.querySelectorAll("a[data-to]").forEach((link) =>
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the address keeps the state
    const target = document.getElementById(link.dataset.to);
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  }),
);
if (unread.length) {
  const words = document.getElementById("notice");
  words.textContent = `Part of the link could not be read and was left out: ${unread.join(", ")}.`;
  words.hidden = false;
}
if (own) {
  // Not scrollIntoView, which also scrolls the notebook that the page is a part of.
  const sandbox = document.getElementById("sandbox");
  const margin = Number.parseFloat(getComputedStyle(sandbox).scrollMarginTop);
  window.scrollTo({ top: sandbox.getBoundingClientRect().top - margin, behavior: "instant" });
}
