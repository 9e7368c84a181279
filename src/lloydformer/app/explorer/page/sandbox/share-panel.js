// Takes the state away: link, Python, pictures, the whole page.
import { h, select } from "../dom.js";
import { asPython } from "../interpreter/index.js";
import { writeHash } from "../state.js";
import { savePage } from "./save-page.js";
import { copy, saveCanvas, savePng, saveSvg } from "./share.js";

export class SharePanel {
  /** `figures`: drawings by name; `maps()`: the matrices of the selected head by name. */
  constructor(model, figures, maps) {
    Object.assign(this, { model, figures, maps });
    const button = (text, onclick, title) => h("button", { type: "button", onclick, title }, text);
    this.saves = select(
      "Save",
      [
        ["", "Save…"],
        ["page", "this page as one file (HTML)"],
        ["As SVG", Object.keys(figures).map((name) => [`svg ${name}`, `${name} (SVG)`])],
        [
          "As PNG",
          [...Object.keys(figures), "scores", "attention"].map((name) => [
            `png ${name}`,
            `${name} (PNG)`,
          ]),
        ],
      ],
      (value) => this.save(...value.split(" ")),
    );
    this.root = h(
      "div",
      { class: "share" },
      button("Copy link", () => this.link(), "The address holds everything you see"),
      button("Copy as Python", () => this.python(), "Code that makes the same circuit and trace"),
      this.saves,
    );
    this.field = h("textarea", {
      class: "copied",
      rows: 9,
      readonly: true,
      "aria-label": "Copied text",
      spellcheck: "false",
    });
    this.words = h("p", { class: "share-words", role: "status" });
    this.drawer = h(
      "div",
      { class: "drawer panel", hidden: true },
      h(
        "div",
        { class: "drawer-head" },
        this.words,
        button("Close", () => {
          this.drawer.hidden = true;
        }),
      ),
      this.field,
    );
  }

  save(kind, name) {
    this.saves.value = "";
    if (kind === "page") return savePage(this.model.state);
    const map = this.maps()[name];
    if (map) return saveCanvas(map.canvas, name);
    return kind === "svg"
      ? saveSvg(this.figures[name], name)
      : kind === "png" && savePng(this.figures[name], name);
  }

  /** Writes the state into the address, a moment after the last change. */
  remember() {
    if (!this.ready) {
      this.ready = true;
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const hash = writeHash(this.model.state);
      if (hash && hash !== location.hash) history.replaceState(null, "", hash);
    }, 250);
  }

  async say(text, done) {
    this.drawer.hidden = false;
    this.field.hidden = false;
    const copied = await copy(text, this.field);
    this.words.textContent = copied ? done : "Copy this text:";
  }

  python() {
    const { model } = this;
    if (!model.trace) return this.note("The recipe is refused: there is nothing to copy.");
    const { recipe, layers: nLayers, seed, breaks: interventions } = model.state;
    const { points, centers } = model;
    return this.say(
      asPython({ recipe, points, centers, nLayers, seed, interventions }),
      "The code is copied. It ends with the objective after each layer.",
    );
  }

  note(words) {
    this.drawer.hidden = false;
    this.field.hidden = true;
    this.words.textContent = words;
  }

  link() {
    const hash = writeHash(this.model.state);
    if (hash) return this.say(new URL(hash, location.href).href, "The link is copied.");
    return this.note(
      `The ${this.model.state.points.length} points are too many for a link: copy as Python, or save the page.`,
    );
  }
}
