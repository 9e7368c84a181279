// What is looked at: a point or a center. Plots and matrices that show it light it up together.
export class Hover {
  constructor() {
    this.seen = null;
    this.listeners = [];
  }

  /** Returns a function that ends the listening. */
  listen(listener) {
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((one) => one !== listener);
    };
  }

  /** `seen` is {kind: "point" | "center", index, also?: {kind, index}, words?} or null. */
  look(seen) {
    const same = (a, b) => a?.kind === b?.kind && a?.index === b?.index && a?.words === b?.words;
    if (same(seen, this.seen)) return;
    this.seen = seen;
    this.listeners.forEach((listener) => listener(seen));
  }

  /** The indices of this kind that are looked at. */
  of(kind) {
    return [this.seen, this.seen?.also].filter((one) => one?.kind === kind).map((one) => one.index);
  }
}
