// Light or dark, and whether things move.
import { h } from "./dom.js";

const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function preferences(place) {
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const isStill = () => (root.dataset.motion ? root.dataset.motion === "off" : calm.matches);
  const theme = h("button", {
    type: "button",
    onclick: () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      document.dispatchEvent(new Event("themechange"));
      name();
    },
  });
  const motion = h("button", {
    type: "button",
    onclick: () => {
      root.dataset.motion = isStill() ? "on" : "off";
      name();
    },
  });
  const name = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Use ${isDark() ? "light" : "dark"} colours`);
    motion.textContent = "Motion";
    motion.title = isStill() ? "Things stand still" : "Things glide";
    motion.setAttribute("aria-pressed", String(!isStill()));
  };
  name();
  dark.addEventListener("change", name);
  calm.addEventListener("change", name);
  place.replaceChildren(motion, theme);
}
