// The layer as a figure: two rails (points, centers), a box for each head between them, norm and network.
import { h, rebuilt, s, set } from "../dom.js";
import { BOX, PILL, THUMB, WIDTH, layout } from "./layer-layout.js";
import { headBox, rails, smallBox, taps, thumbMarks, tips } from "./layer-shapes.js";
import { thumbnail } from "./thumbnail.js";
import { headsOf } from "./words.js";

export class LayerFigure {
  /** `menu(slot)`: the menu of a slot, or null; `onhead(name)`: a head was chosen. */
  constructor({ menu, onhead, hover }) {
    Object.assign(this, { menu, onhead, hover });
    this.boxes = {};
    hover.listen(() => this.light());
    this.svg = s("svg", {
      class: "layer",
      role: "img",
      "aria-label": "One layer of the transformer",
    });
    this.over = h("div", { class: "over" });
    this.root = h("div", { class: "layer-box" }, this.svg, this.over);
  }

  /** Draws the boxes of a recipe. */
  build(recipe) {
    const heads = headsOf(recipe);
    const plan = layout(Object.keys(heads));
    set(this.svg, { viewBox: `0 0 ${WIDTH} ${plan.height}` });
    this.root.style.aspectRatio = `${WIDTH} / ${plan.height}`;
    this.boxes = Object.fromEntries(
      plan.boxes.map((box) => [box.name, headBox(box, heads[box.name])]),
    );
    this.svg.replaceChildren(
      tips(),
      ...rails(plan, recipe),
      ...taps(plan),
      ...Object.values(this.boxes).map(({ group }) => group),
      ...plan.small.map((box) => smallBox(box, recipe[box.slot])),
    );
    rebuilt(this.over, () =>
      this.over.replaceChildren(
        ...plan.boxes.flatMap((box) => this.controls(box, plan)),
        ...plan.small.map((box) =>
          this.slotMenu(box.slot, BOX.left, box.top, BOX.right - BOX.left, box.height, plan),
        ),
      ),
    );
  }

  /** Transparent controls over a box: choose the head, and its menu of parts. */
  controls({ name, title, line, top, slot }, plan) {
    const place = placed(BOX.left, top, BOX.right - BOX.left, BOX.height, plan.height);
    const look = h("button", {
      type: "button",
      class: "look",
      style: place,
      "data-head": name,
      "aria-pressed": "false",
      "aria-label": `${title}: ${line}. Look inside.`,
      onclick: () => this.onhead(name),
    });
    return name === slot
      ? [look, this.slotMenu(slot, BOX.left + 8, top + 44, PILL, 21, plan)]
      : [look];
  }

  slotMenu(slot, x, y, width, height, plan) {
    const menu = this.menu(slot);
    if (!menu) return "";
    menu.setAttribute("style", placed(x, y, width, height, plan.height));
    menu.classList.add("slot-menu");
    return menu;
  }

  /**
   * Shows the attention of a layer in the boxes; `attention(name)` gives {matrix, tint} or null.
   * `fails`: for each slot, how many lines of the algorithm do not hold.
   */
  show(attention, selected, broken, fails) {
    for (const [name, box] of Object.entries(this.boxes)) {
      const found = attention(name);
      set(box.thumb, { href: found ? thumbnail(found.matrix, found.tint, THUMB) : "data:," });
      box.thumb.style.visibility = found ? "visible" : "hidden";
      box.size = found?.matrix ?? null;
      box.fails.textContent = fails[name] ? `✗ ${fails[name]}` : "";
      box.group.classList.toggle("selected", name === selected);
      box.group.classList.toggle("broken", broken.has(name));
    }
    this.over
      .querySelectorAll(".look")
      .forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.head === selected)));
    this.light();
  }

  /** Frames what is looked at in the small pictures. */
  light() {
    for (const box of Object.values(this.boxes)) {
      box.marks.replaceChildren(...(box.size ? thumbMarks(box, box.size, this.hover) : []));
    }
  }
}

const placed = (x, y, width, height, total) =>
  `left:${(100 * x) / WIDTH}%;top:${(100 * y) / total}%;width:${(100 * width) / WIDTH}%;height:${(100 * height) / total}%`;
