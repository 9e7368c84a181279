// Points of one's own, pasted as text or uploaded.
import { h } from "../dom.js";
import { asText, parsePoints, textOf, Unreadable } from "./csv.js";

export class OwnPoints {
  /** `points()`: the present ones; `onpoints(points)`: use these. */
  constructor(points, onpoints) {
    Object.assign(this, { points, onpoints });
    const button = (text, onclick, cls) =>
      h("button", { type: "button", class: cls, onclick }, text);
    this.text = h("textarea", {
      rows: 5,
      "aria-label": "Points, one per line",
      spellcheck: "false",
    });
    this.file = h("input", {
      type: "file",
      accept: ".csv,.txt,.tsv,text/*",
      "aria-label": "Upload points as CSV",
      onchange: () => this.upload(),
    });
    this.words = h("p", { class: "csv-words", role: "status" });
    const about = "One point per line, numbers separated by commas. Nothing leaves your computer.";
    const use = button("Use these points", () => this.read(this.text.value), "primary");
    const close = button("Close", () => this.open(false));
    const buttons = h("div", { class: "choices" }, use, this.file, close);
    this.root = h(
      "div",
      { class: "own panel", hidden: true },
      h("p", {}, about),
      this.text,
      buttons,
      this.words,
    );
    this.button = button("Paste or upload", () => this.open(this.root.hidden));
    this.open(false);
  }

  open(on) {
    this.root.hidden = !on;
    this.button.setAttribute("aria-expanded", String(on));
    if (!on) return;
    this.text.value = asText(this.points());
    this.words.textContent = "";
    this.text.focus();
  }

  async upload() {
    const [file] = this.file.files;
    if (!file) return;
    try {
      this.read(await textOf(file));
    } catch (error) {
      this.say(error);
    }
    this.file.value = "";
  }

  read(text) {
    try {
      const points = parsePoints(text);
      this.onpoints(points);
      this.words.textContent = `${points.length} points with ${points[0].length} numbers each.`;
      this.words.classList.remove("wrong");
    } catch (error) {
      this.say(error);
    }
  }

  say(error) {
    if (!(error instanceof Unreadable)) throw error;
    this.words.textContent = error.message;
    this.words.classList.add("wrong");
  }
}
