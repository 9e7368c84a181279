// The layer as a figure: two rails (points, centers), a box for each head between them, norm and network.
import { h, rebuilt, s, set } from "../dom.js";
import { BOX, COPIES, RAILS, WIDTH, layout } from "./layer-layout.js";
import { thumbnail } from "./thumbnail.js";
import { activationWords, headsOf, scoreWords, subspaceWords } from "./words.js";

const [THUMB, PILL] = [54, 212];
const NAMES = { norm: "norm", feedforward: "network" };

const arrow = (x1, y, x2, side) => s("path", { class: `wire ${side}`, d: `M${x1},${y}H${x2}`, "marker-end": `url(#tip-${side})` });

function plus(x, y, side) {
  return s("g", { class: `plus ${side}`, transform: `translate(${x},${y})` }, s("circle", { r: 8 }), s("path", { d: "M-4.5,0H4.5M0,-4.5V4.5" }));
}

const tips = () => s("defs", {}, ["encoder", "decoder"].map((side) => s("marker", {
  id: `tip-${side}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse",
}, s("path", { class: `tip ${side}`, d: "M0,0.5L8,4L0,7.5Z" }))));

export class LayerFigure {
  /** `menu(slot)`: the menu of a slot, or null; `onhead(name)`: a head was chosen. */
  constructor({ menu, onhead }) {
    Object.assign(this, { menu, onhead });
    this.svg = s("svg", { class: "layer", role: "img", "aria-label": "One layer of the transformer" });
    this.over = h("div", { class: "over" });
    this.root = h("div", { class: "layer-box" }, this.svg, this.over);
  }

  /** Draws the boxes of a recipe. */
  build(recipe) {
    this.heads = headsOf(recipe);
    const plan = layout(Object.keys(this.heads));
    set(this.svg, { viewBox: `0 0 ${WIDTH} ${plan.height}` });
    this.root.style.aspectRatio = `${WIDTH} / ${plan.height}`;
    this.thumbs = {};
    this.marks = {};
    this.boxes = {};
    this.svg.replaceChildren(tips(), ...this.rails(plan, recipe), ...this.taps(plan),
      ...plan.boxes.map((box) => this.box(box)), ...plan.small.map((box) => this.small(box, recipe)));
    rebuilt(this.over, () => this.over.replaceChildren(...plan.boxes.flatMap((box) => this.controls(box, plan)),
      ...plan.small.map((box) => this.slotMenu(box.slot, BOX.left, box.top, BOX.right - BOX.left, box.height, plan))));
  }

  rails(plan, recipe) {
    const bottom = plan.height - 14;
    const subspaces = recipe.tokens.subspaces.map((space) => space.symbol);
    const rail = (side, words) => {
      const x = RAILS[side];
      const anchor = side === "encoder" ? "start" : "end";
      const edge = side === "encoder" ? 2 : WIDTH - 2;
      const chips = subspaces.map((symbol, i) => {
        const at = side === "encoder" ? 2 + 26 * i : WIDTH - 2 - 26 * (subspaces.length - i) + 2;
        return s("g", { transform: `translate(${at},20)`, class: `chip ${side}` }, s("rect", { width: 24, height: 20, rx: 4 }),
          s("text", { x: 12, y: 14 }, side === "decoder" && symbol === "x" ? "c" : symbol));
      });
      return s("g", {}, s("path", { class: `rail ${side}`, d: `M${x},40V${bottom}` }), s("path", { class: `tip ${side}`, d: `M${x - 6},${bottom}h12l-6,11z` }),
        s("text", { class: `rail-name ${side}`, x: edge, y: 13, "text-anchor": anchor }, words), chips);
    };
    const spaces = recipe.tokens.subspaces.map((space) => `${space.symbol} ${subspaceWords(space.name)}`).join("   ");
    return [rail("encoder", "points"), rail("decoder", "centers"),
      s("text", { class: "note", x: WIDTH / 2, y: 13, "text-anchor": "middle" }, "one layer = one iteration"),
      s("text", { class: "note", x: WIDTH / 2, y: 32, "text-anchor": "middle" }, spaces.length < 44 ? spaces : "")];
  }

  /** The copies of the tokens that all heads of a group read, before anything is added. */
  taps(plan) {
    return plan.taps.map(({ side, from, to }) => s("g", {}, s("path", { class: `wire ${side}`, d: `M${RAILS[side]},${from}H${COPIES[side]}V${to}` }),
      s("circle", { class: `dot ${side}`, cx: RAILS[side], cy: from, r: 3.2 })));
  }

  box({ name, side, asks, answers, title, line, top, input, output }) {
    const [near, far] = side === "encoder" ? [BOX.left, BOX.right] : [BOX.right, BOX.left];
    const other = side === "encoder" ? "decoder" : "encoder";
    const self = asks === answers;
    const head = this.heads[name];
    this.thumbs[name] = s("image", { x: BOX.right - THUMB - 10, y: top + 9, width: THUMB, height: THUMB, preserveAspectRatio: "none" });
    this.marks[name] = s("text", { class: "fails", x: BOX.right - THUMB - 18, y: top + 19 });
    const text = (y, words, cls) => s("text", { x: BOX.left + 12, y: top + y, class: cls }, words);
    return this.boxes[name] = s("g", { class: `head ${self ? "self" : "cross"}` },
      arrow(COPIES[side], input, near, side), s("path", { class: `wire ${side} out`, d: `M${near},${output}H${RAILS[side]}` }), plus(RAILS[side], output, side),
      self ? null : [arrow(RAILS[other], input, far, other), s("circle", { class: `dot ${other}`, cx: RAILS[other], cy: input, r: 3.2 })],
      s("rect", { class: "body", x: BOX.left, y: top, width: BOX.right - BOX.left, height: BOX.height, rx: 9 }),
      text(19, title, "title"), text(35, line, "line"),
      s("rect", { class: "pill", x: BOX.left + 8, y: top + 44, width: PILL, height: 21, rx: 6 }),
      text(59, `${scoreWords(head.score)} → ${activationWords(head.activation)}`, "part"),
      s("path", { class: "caret", d: `M${BOX.left + PILL - 7},${top + 52}l4,5l4,-5` }),
      s("rect", { class: "thumb", x: BOX.right - THUMB - 10.5, y: top + 8.5, width: THUMB + 1, height: THUMB + 1 }), this.thumbs[name], this.marks[name]);
  }

  small({ slot, top, input, output, height }, recipe) {
    const part = recipe[slot];
    const rail = RAILS.decoder;
    const words = part ? part.part.replace("RMSNorm", "RMS norm").replace("LayerNorm", "layer norm").replace("Quadratic", "squares the position") : "none";
    const wires = [arrow(rail, input, BOX.right, "decoder"), slot === "norm"
      ? s("path", { class: "wire decoder", d: `M${BOX.right},${output}H${rail}` }) : [s("path", { class: "wire decoder out", d: `M${BOX.right},${output}H${rail}` }), plus(rail, output, "decoder")]];
    return s("g", { class: `small${part ? "" : " empty"}` }, part ? wires : null,
      part && slot === "norm" ? s("path", { class: "cut", d: `M${rail},${input + 2}V${output - 2}` }) : null,
      s("rect", { class: "body", x: BOX.left, y: top, width: BOX.right - BOX.left, height, rx: 8 }),
      s("text", { class: "title", x: BOX.left + 12, y: top + 17 }, NAMES[slot]),
      s("text", { class: "part", x: BOX.left + 76, y: top + 17 }, words), s("path", { class: "caret", d: `M${BOX.right - 18},${top + 10}l4,5l4,-5` }));
  }

  /** Transparent controls over a box: choose the head, and its menu of parts. */
  controls({ name, title, line, top, slot }, plan) {
    const place = placed(BOX.left, top, BOX.right - BOX.left, BOX.height, plan.height);
    const look = h("button", { type: "button", class: "look", style: place, "data-head": name, "aria-pressed": "false", "aria-label": `${title}: ${line}. Look inside.`, onclick: () => this.onhead(name) });
    return name === slot ? [look, this.slotMenu(slot, BOX.left + 8, top + 44, PILL, 21, plan)] : [look];
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
    for (const [name, image] of Object.entries(this.thumbs)) {
      const found = attention(name);
      set(image, { href: found ? thumbnail(found.matrix, found.tint, THUMB) : "data:," });
      image.style.visibility = found ? "visible" : "hidden";
      this.marks[name].textContent = fails[name] ? `✗ ${fails[name]}` : "";
      this.boxes[name].classList.toggle("selected", name === selected);
      this.boxes[name].classList.toggle("broken", broken.has(name));
    }
    this.over.querySelectorAll(".look").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.head === selected)));
  }
}

const placed = (x, y, width, height, total) =>
  `left:${100 * x / WIDTH}%;top:${100 * y / total}%;width:${100 * width / WIDTH}%;height:${100 * height / total}%`;
