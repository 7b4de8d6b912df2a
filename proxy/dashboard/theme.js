// Light, dark, or as the system has it. Remembered by this browser.
import { byId, element } from "/dom.js";

const SLOT = "sluice.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").replaceChildren(element("span", { "aria-hidden": "true" }, "◐"), element("span", { class: "wide" }, ` ${theme}`));
  byId("theme").setAttribute("aria-label", `Theme: ${theme}`);
  byId("theme").title = "Theme: system, light or dark";
}

export function startTheme() {
  let theme = localStorage.getItem(SLOT);
  if (!(theme in NEXT)) theme = "system";
  apply(theme);
  byId("theme").addEventListener("click", () => {
    theme = NEXT[theme];
    localStorage.setItem(SLOT, theme);
    apply(theme);
  });
}
