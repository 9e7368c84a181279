// What can be done to the selected head: switch it off, even or freeze it, set it by hand, erase subspaces.
import { h, rebuilt } from "../dom.js";
import {
  breakOf,
  breakWords,
  erased,
  evened,
  frozen,
  sameBreak,
  setByHand,
  switchedOff,
  targetOf,
} from "./breaks.js";
import { headWords, subspaceWords } from "./words.js";

export class BreakPanel {
  /** `onmode()`: whether clicks on the attention set it by hand has changed. */
  constructor(model, onmode) {
    Object.assign(this, { model, onmode, byHand: false });
    this.root = h("div", { class: "breaks" });
  }

  show() {
    const { state } = this.model;
    const now = breakOf(state.breaks, state.head);
    const button = (kind, text, title, pressed = now === kind) =>
      h(
        "button",
        {
          type: "button",
          title,
          "aria-pressed": String(pressed),
          "data-break": kind,
          onclick: () => this.toggle(kind),
        },
        text,
      );
    const { asks, answers } = headWords(state.head);
    rebuilt(this.root, () =>
      this.root.replaceChildren(
        h("h4", {}, "Break it"),
        h(
          "div",
          { class: "choices", role: "group", "aria-label": "Break this head" },
          button("off", "Switch off", "It adds nothing any more."),
          asks !== answers ? button("even", "Ask evenly", "All keys get the same weight.") : null,
          button("freeze", "Freeze", "Its attention in all layers is that of the layer shown."),
          button("hand", "Set by hand", "Then click cells of the attention.", this.byHand),
        ),
        this.erasers(),
        this.broken(),
      ),
    );
  }

  /** What is broken, each with its repair. */
  broken() {
    const { breaks } = this.model.state;
    const items = breaks.map((one) =>
      h(
        "li",
        {},
        breakWords(one),
        " ",
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-label": `repair: ${breakWords(one)}`,
            onclick: () => this.model.change({ breaks: breaks.filter((other) => other !== one) }),
          },
          "repair",
        ),
      ),
    );
    return items.length ? h("ul", { class: "broken-list" }, items) : "";
  }

  /** Buttons that erase a subspace of all points or of all centers. */
  erasers() {
    const { state, circuit } = this.model;
    const { side } = headWords(state.head);
    const whose = side === "encoder" ? "points" : "centers";
    const buttons = (circuit?.subspaces ?? []).map(({ name }) => {
      const one = erased(side, name);
      const others = state.breaks.filter((other) => !sameBreak(one, other));
      const pressed = others.length < state.breaks.length;
      return h(
        "button",
        {
          type: "button",
          "aria-pressed": String(pressed),
          onclick: () => this.model.change({ breaks: pressed ? others : [...others, one] }),
        },
        subspaceWords(name),
      );
    });
    return buttons.length
      ? h(
          "div",
          { class: "choices", role: "group", "aria-label": `Erase from the ${whose}` },
          h("span", { class: "lead-in" }, `Erase from ${whose}:`),
          buttons,
        )
      : "";
  }

  toggle(kind) {
    const {
      state: { breaks, head },
      layer,
    } = this.model;
    if (kind === "hand") {
      this.byHand = !this.byHand;
      this.onmode();
      return;
    }
    const others = breaks.filter(
      (one) => !(targetOf(one).head === head && targetOf(one).layer === null),
    );
    const make = {
      off: () => switchedOff(head),
      freeze: () => frozen(head, Math.max(0, layer - 1)),
      even: () => evened(head, this.model.trace.get(`layers.0.${head}.attention`)),
    };
    this.model.change({
      breaks: breakOf(breaks, head) === kind ? others : [...others, make[kind]()],
    });
  }

  patch(row, column) {
    const {
      state: { breaks, head },
      layer,
    } = this.model;
    if (!this.byHand || layer === 0) return;
    const one = setByHand(head, layer - 1, this.model.get(`${head}.attention`), row, column);
    this.model.change({ breaks: [...breaks.filter((other) => !sameBreak(one, other)), one] });
  }
}
