// Puts the page together: the feed, the list, the chosen autoscaler, the theme.

import { setText, set } from "./dom.js";
import { Detail } from "./detail.js";
import { Feed } from "./feed.js";
import { clock, plural } from "./format.js";
import { List } from "./list.js";

const feed = new Feed();
const list = new List(feed);
const detail = new Detail(feed);
const frame = document.getElementById("frame");
const wide = matchMedia("(min-width: 60rem)");

let chosen = null;

/** The autoscaler that the address names. */
function addressed() {
  // Namespace, name, and the resource for other kinds than HorizontalPodAutoscaler.
  const [, ...parts] = location.hash.split("/");
  if (parts.length < 2 || parts.length > 3 || !parts.every(Boolean)) return null;
  try {
    return parts.map(decodeURIComponent).join("/");
  } catch {
    return null;
  }
}

function route(event) {
  const key = addressed();
  // Where both fit side by side, something is always shown.
  const next = key ?? (wide.matches ? list.first : null);
  set(frame, "data-view", key ? "one" : "all");
  const moved = next !== chosen;
  chosen = next;
  list.choose(next);
  detail.show(next);
  if (moved || !event) feed.watch(next);
  document.title = next ? `${next} · Podscale` : "Podscale";
  if (event?.type === "hashchange" && moved && key && !wide.matches) {
    scrollTo(0, 0);
    document.getElementById("detail").focus({ preventScroll: true });
  }
  // Back in the list, the focus returns to where it came from.
  if (event?.type === "hashchange" && !key && event.oldURL) {
    const from = new URL(event.oldURL).hash;
    document.querySelector(`a.row[href="${CSS.escape(from)}"]`)?.focus();
  }
}

function drawTop() {
  const words = { connecting: "Connecting", live: "Live", lost: "Reconnecting" };
  const link = document.getElementById("link");
  set(link, "data-link", feed.link);
  setText(link.querySelector(".word"), words[feed.link]);
  set(document.body, "data-link", feed.link);
  if (!feed.loaded) return;
  const failing = [...feed.rows.values()].filter((row) => row.outcome === "failed").length;
  const count = plural(feed.rows.size, "autoscaler");
  setText(document.getElementById("tally"), failing ? `${count}, ${failing} failing` : count);
  const speed = feed.speed === 1 ? "" : ` ×${feed.speed}`;
  setText(document.getElementById("clock"), clock(feed.now()) + speed);
}

feed.addEventListener("rows", () => {
  list.draw();
  if (!chosen) route();
  detail.draw();
  drawTop();
});
feed.addEventListener("past", () => detail.draw());
feed.addEventListener("link", () => {
  drawTop();
  list.draw();
  detail.draw();
});

addEventListener("hashchange", route);
wide.addEventListener("change", route);
setInterval(() => {
  if (document.hidden) return;
  drawTop();
  list.draw();
  detail.draw();
}, 1000);

const THEMES = ["auto", "light", "dark"];
const themeButton = document.getElementById("theme");

function drawTheme() {
  const theme = document.documentElement.dataset.theme ?? "auto";
  set(themeButton, "data-theme", theme);
  setText(themeButton, { auto: "Auto", light: "Light", dark: "Dark" }[theme]);
  set(themeButton, "aria-label", `Theme: ${theme}. Change`);
}

themeButton.addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme ?? "auto";
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem("podscale-theme");
    else localStorage.setItem("podscale-theme", next);
  } catch {
    // Without storage the choice holds until the page is left.
  }
  drawTheme();
});

drawTheme();
drawTop();
list.draw();
route();
