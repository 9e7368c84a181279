// Play, step and scrub through the layers.
import { h, s } from "../dom.js";

const ICONS = {
  start: "M4,3V13M13,3L6,8L13,13Z",
  back: "M11.5,3L4,8L11.5,13Z",
  play: "M5,2.5L13.5,8L5,13.5Z",
  pause: "M4.5,3V13M11.5,3V13",
};
const icon = (name) =>
  s(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    s("path", { d: ICONS[name] }),
  );

const still = () =>
  matchMedia("(prefers-reduced-motion: reduce)").matches ||
  document.documentElement.dataset.motion === "off";

export class Player {
  /** `onlayer(layer)`: show that layer. */
  constructor(onlayer) {
    this.onlayer = onlayer;
    this.layer = 0;
    this.layers = 1;
    const button = (label, text, onclick, cls = "round") =>
      h("button", { type: "button", class: cls, "aria-label": label, title: label, onclick }, text);
    this.back = button("Back to the start", icon("start"), () => this.go(0));
    this.previous = button("One layer back", icon("back"), () => this.go(this.layer - 1));
    this.toggle = button("Play", icon("play"), () => this.play(), "round primary");
    this.next = button("Step: one layer on", "Step", () => this.go(this.layer + 1), "");
    this.scrub = h("input", {
      type: "range",
      min: 0,
      max: 1,
      value: 0,
      step: 1,
      "aria-label": "Layer",
      oninput: () => this.go(Number(this.scrub.value)),
    });
    this.words = h("output", { class: "layer-words", "aria-live": "polite" });
    this.root = h(
      "div",
      { class: "player", role: "group", "aria-label": "Layers" },
      this.back,
      this.previous,
      this.toggle,
      this.next,
      h("div", { class: "scrub" }, this.scrub),
      this.words,
    );
  }

  show(layer, layers) {
    Object.assign(this, { layer, layers });
    this.scrub.max = layers;
    this.scrub.value = layer;
    this.scrub.setAttribute("aria-valuetext", this.describe());
    this.words.textContent = this.describe();
    for (const [control, ends] of [
      [this.back, layer === 0],
      [this.previous, layer === 0],
      [this.next, layer >= layers],
    ]) {
      control.setAttribute("aria-disabled", String(ends)); // not disabled: that would take the focus away
    }
  }

  describe() {
    return this.layer === 0
      ? `start of ${this.layers} layers`
      : `after layer ${this.layer} of ${this.layers}`;
  }

  go(layer, keep = false) {
    if (!keep) this.stop();
    this.onlayer(Math.min(this.layers, Math.max(0, layer)));
  }

  play() {
    if (this.timer) return this.stop();
    if (this.layer >= this.layers) this.go(0);
    this.toggle.replaceChildren(icon("pause"));
    this.toggle.setAttribute("aria-label", "Pause");
    const tick = () => {
      this.go(this.layer + 1, true);
      if (this.layer >= this.layers) this.stop();
    };
    tick();
    this.timer = this.layer < this.layers ? setInterval(tick, still() ? 700 : 900) : null;
    if (!this.timer) this.stop();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.toggle.replaceChildren(icon("play"));
    this.toggle.setAttribute("aria-label", "Play");
  }
}
