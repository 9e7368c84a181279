// The story: a few screens, each with a live figure; then the sandbox.
import { centerAsks } from "./center-asks.js";
import { experiments } from "./experiments.js";
import { hero } from "./hero.js";
import { pointAsks } from "./point-asks.js";
import { selfWipes } from "./self-wipes.js";
import { stackLayers } from "./stack.js";
import { swapPart } from "./swap.js";

/** `onopen({name, recipe, data, ...})`: open an experiment in the sandbox. */
export function tellStory(root, onopen) {
  root.replaceChildren(
    hero(),
    pointAsks(),
    centerAsks(),
    selfWipes(),
    stackLayers(),
    swapPart(onopen),
    experiments(onopen),
  );
}
