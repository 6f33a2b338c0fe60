"use strict";
// Words under the pointer and by the arrow keys, the slider along a prior's scale, and everything unfolded in print.
// All words come from the page itself and are set as text, never as HTML.
(() => {
  const box = document.getElementById("pointed");

  function show(words, x, y) {
    box.textContent = words;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = Math.min(Math.max(4, x + 12), innerWidth - width - 4);
    const above = y - height - 12;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${above > 4 ? above : y + 16}px`;
  }
  function point(tip) {
    const { left, top } = tip.getBoundingClientRect();
    show(tip.getAttribute("aria-label"), left, top);
  }
  // A page that scrolls to what has the focus moves away under the pointer, which must not hide it.
  function hide() {
    const focused = document.activeElement?.closest?.("svg .tip");
    if (focused) point(focused); else box.hidden = true;
  }

  // Lines are thin and fingers are not: what is within 7 pixels counts as pointed at, before the stretch of the axis.
  const NEAR = [[0, 0], [4, 0], [-4, 0], [0, 4], [0, -4], [7, 7], [-7, 7], [7, -7], [-7, -7]];
  function at(x, y, kind) {
    for (const own of document.elementsFromPoint(x, y)) {
      const found = own.closest(kind);
      if (found) return found;
    }
    return null;
  }
  function under(x, y) {
    for (const [dx, dy] of NEAR) {
      const found = at(x + dx, y + dy, "svg .tip:not(.strip)");
      if (found) return found;
    }
    return at(x, y, "svg .strip");
  }

  for (const svg of document.querySelectorAll("figure svg")) {
    const tips = [...svg.querySelectorAll(".tip")];
    for (const tip of tips) tip.querySelector(":scope > title")?.remove(); // this box takes its place
    svg.addEventListener("pointermove", (event) => {
      const tip = under(event.clientX, event.clientY);
      if (tip) show(tip.getAttribute("aria-label"), event.clientX, event.clientY); else hide();
    });
    svg.addEventListener("pointerleave", hide);
    tips.forEach((tip, i) => {
      tip.addEventListener("focus", () => requestAnimationFrame(() => point(tip)));
      tip.addEventListener("blur", () => { box.hidden = true; });
      tip.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") box.hidden = true;
        if (!step) return;
        event.preventDefault();
        const next = tips[(i + step + tips.length) % tips.length];
        tip.setAttribute("tabindex", "-1");
        next.setAttribute("tabindex", "0");
        next.focus();
      });
    });
  }

  const scale = document.getElementById("scale");
  if (scale) {
    const words = JSON.parse(document.getElementById("positions").textContent);
    const dots = document.querySelectorAll("#sensitivity figure .tip");
    const at = document.getElementById("at");
    const move = () => {
      const i = Number(scale.value);
      at.textContent = words[i];
      scale.setAttribute("aria-valuetext", words[i]);
      dots.forEach((dot, k) => dot.classList.toggle("here", k === i));
    };
    scale.addEventListener("input", move);
    move();
  }

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const own of closed) own.open = true;
  });
  addEventListener("afterprint", () => { for (const own of closed) own.open = false; });
})();
