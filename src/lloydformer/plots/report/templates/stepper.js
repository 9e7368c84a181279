"use strict";
// Sends `layer` events to the document: detail is the number of layers done, 0 at the start.
(() => {
  const bar = document.querySelector('[data-widget="stepper"]');
  const [button, slider, output] = ["button", "input", "output"].map((tag) => bar.querySelector(tag));
  const last = Number(slider.max);
  const pause = 900; // milliseconds between layers
  let timer = null;

  const show = () => {
    const layer = Number(slider.value);
    const words = layer === 0 ? "start" : `after layer ${layer} of ${last}`;
    output.textContent = words;
    slider.setAttribute("aria-valuetext", words);
    document.dispatchEvent(new CustomEvent("layer", { detail: layer }));
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  };
  const step = () => {
    slider.value = Number(slider.value) + 1;
    show();
    if (Number(slider.value) >= last) stop();
  };
  const play = () => {
    if (Number(slider.value) >= last) slider.value = 0;
    show();
    timer = setInterval(step, pause);
    button.textContent = "Pause";
  };
  const jump = () => {
    const asked = location.hash.match(/layer=(\d+)/);
    if (asked) slider.value = asked[1];
    show();
  };

  button.addEventListener("click", () => (timer ? stop() : play()));
  slider.addEventListener("input", () => { stop(); show(); });
  window.addEventListener("hashchange", jump);
  jump();
})();
