// Pointer and keys on the plot: drag, add and erase points, drag centers, look at either.
const pick = (event) => {
  const mark = event.target.closest?.("[data-point], [data-center]");
  if (!mark) return null;
  return mark.dataset.point !== undefined
    ? { kind: "point", index: Number(mark.dataset.point) }
    : { kind: "center", index: Number(mark.dataset.center) };
};

/** `edit`: {tool(), hold(what), move(what, place), add(place), erase(what), look(what)}. */
export function editable(plot, edit) {
  const { svg } = plot;
  let held = null;
  svg.addEventListener("pointerdown", (event) => {
    const what = pick(event);
    if (edit.tool() === "erase") return what && edit.erase(what);
    if (what) {
      held = what;
      edit.hold(what);
      svg.setPointerCapture(event.pointerId);
      plot.glide(false);
    } else edit.add(plot.place(event));
    return undefined;
  });
  svg.addEventListener("pointermove", (event) => {
    if (held) edit.move(held, plot.place(event));
    else edit.look(pick(event));
  });
  const release = () => {
    held = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("pointerleave", () => {
    if (!held) edit.look(null);
  });
}

const ARROWS = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/** Arrow keys move a center that has the focus; `where(j)` is its place. */
export function centersByKeys(plot, where, move, look) {
  plot.groups.centers.addEventListener("keydown", (event) => {
    const what = pick(event);
    const step = ARROWS[event.key];
    if (!what || !step) return;
    event.preventDefault();
    const size = (event.shiftKey ? 40 : 8) / plot.scale;
    move(
      what,
      where(what.index).map((x, axis) => x + size * step[axis]),
    );
  });
  plot.groups.centers.addEventListener("focusin", (event) => look(pick(event)));
  plot.groups.centers.addEventListener("focusout", () => look(null));
}
