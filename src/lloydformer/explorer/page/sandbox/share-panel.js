// Buttons to take the state away: link, Python, pictures.
import { h } from "../dom.js";
import { writeHash } from "../state.js";
import { copy, saveCanvas, savePng, saveSvg } from "./share.js";

export class SharePanel {
  constructor(model, figures, views) {
    Object.assign(this, { model, figures, views });
    const button = (text, onclick, title) => h("button", { type: "button", onclick, title }, text);
    this.root = h("div", { class: "share" }, button("Copy link", () => this.link(), "The address holds everything you see"));
    this.field = h("textarea", { class: "copied", rows: 8, readonly: true, "aria-label": "Copied text" });
    this.words = h("p", { class: "share-words", role: "status" });
    this.drawer = h("div", { class: "drawer", hidden: true }, this.words, this.field);
  }

  /** Writes the state into the address, a moment after the last change. */
  remember() {
    if (!this.ready) { this.ready = true; return; }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const hash = writeHash(this.model.state);
      if (hash && hash !== location.hash) history.replaceState(null, "", hash);
    }, 250);
  }

  async say(text, done) {
    this.drawer.hidden = false;
    const copied = await copy(text, this.field);
    this.words.textContent = copied ? done : "Copy this text:";
  }

  link() {
    const hash = writeHash(this.model.state);
    if (hash) return this.say(new URL(hash, location.href).href, "The link is copied.");
    this.drawer.hidden = false;
    this.words.textContent = `The ${this.model.state.points.length} points are too many for a link: copy as Python, or save the page.`;
    return undefined;
  }
}
