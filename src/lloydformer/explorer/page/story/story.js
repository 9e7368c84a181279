// The story: a few screens, each with a live figure; then the sandbox.
import { centerAsks } from "./center-asks.js";
import { hero } from "./hero.js";
import { pointAsks } from "./point-asks.js";
import { selfWipes } from "./self-wipes.js";
import { stackLayers } from "./stack.js";
import { swapPart } from "./swap.js";

/** `onopen(name, recipe, data)`: open a recipe in the sandbox with the points of the last screen. */
export function tellStory(root, onopen) {
  root.replaceChildren(hero(), pointAsks(), centerAsks(), selfWipes(), stackLayers(),
    swapPart((name, recipe) => onopen(name, recipe, "outliers")));
}
