// Which algorithm runs: the menu of recipes, what the page makes of the parts, and the sliders.
import { h, labelled, select } from "../dom.js";
import { identify, withPart } from "../interpreter/index.js";
import { RECIPES } from "../recipes.js";
import { knobSlider, knobs, turned } from "./menus.js";

export const LIVE = RECIPES.filter((one) => one.live);
export const recipeNamed = (name) => LIVE.find((one) => one.name === name);

const entry = ({ name, title }) => [name, `${name} · ${title}`];
const plain = (text) => text.replace(/^\*/, "");

export class RecipeBar {
  constructor(model) {
    this.model = model;
    this.menu = select(
      "Algorithm",
      [
        ["The paper's table", LIVE.filter((one) => one.inTable).map(entry)],
        ["More recipes", LIVE.filter((one) => !one.inTable).map(entry)],
      ],
      (name) => this.choose(name),
    );
    this.mixed = h("option", { value: "", disabled: true }, "your own mix of parts");
    this.menu.append(this.mixed);
    this.verdict = h("p", { class: "verdict", "aria-live": "polite" });
    this.undo = h(
      "button",
      { type: "button", onclick: () => this.choose(model.state.baseName) },
      "Undo changes",
    );
    this.root = h(
      "div",
      { class: "recipe-bar" },
      labelled("Algorithm", this.menu),
      this.verdict,
      this.undo,
    );
    this.knobs = h("div", { class: "knobs" });
    this.shape = null;
  }

  choose(name) {
    const { recipe, needsUnitVectors } = recipeNamed(name);
    this.model.change({ recipe, base: recipe, baseName: name, unit: needsUnitVectors });
  }

  /** Puts parts into the recipe: [[path, part], ...]. */
  set(sets) {
    const recipe = sets.reduce(
      (before, [path, part]) => withPart(before, path, part),
      this.model.state.recipe,
    );
    this.model.change({ recipe });
  }

  show() {
    const { state, refusal, trace } = this.model;
    const name = identify(state.recipe);
    const isChanged = JSON.stringify(state.recipe) !== JSON.stringify(state.base);
    this.mixed.hidden = name !== "new";
    this.menu.value = name === "new" ? "" : name;
    this.undo.hidden = !isChanged;
    const known = RECIPES.find((one) => one.name === name);
    const [kind, ...words] = refusal
      ? ["refused", h("b", {}, "Refused. "), refusal]
      : name === "new"
        ? ["new", h("b", {}, "New. "), "No recipe of the package has these parts."]
        : ["known", h("b", {}, `This is ${plain(known.row.Algorithm)}`)];
    const count = refusal ? 0 : state.breaks.length;
    if (count) words.push(count === 1 ? " with one thing broken" : ` with ${count} things broken`);
    this.verdict.className = `verdict ${count ? "broken" : kind}`;
    this.verdict.replaceChildren(...words);
    if (trace?.warning && !refusal) this.verdict.append(` ${trace.warning}.`);
    this.showKnobs();
  }

  /** Builds sliders anew only if there are others than before, so that a drag goes on. */
  showKnobs() {
    const found = knobs(this.model.state.recipe);
    const shape = JSON.stringify(
      found.map(({ slot, path, value }) => [slot, path, value === null]),
    );
    if (shape === this.shape) return;
    this.shape = shape;
    this.knobs.replaceChildren(
      ...found.map((knob) =>
        knobSlider(knob, (value) =>
          this.model.change({ recipe: turned(this.model.state.recipe, knob, value) }),
        ),
      ),
    );
  }
}
