// The list of autoscalers: state at a glance, filtered and sorted.

import { h, s, set, setText, keyed } from "./dom.js";
import { outcomeOf, plural, roughlyAgo, unitOf } from "./format.js";

/** More rows than this are not drawn; the filter finds the rest. */
const MOST = 300;

const SORTS = {
  attention: (a, b) => rank(a) - rank(b),
  name: () => 0,
  size: (a, b) => b.current - a.current,
  recent: (a, b) => (b.lastScale ?? 0) - (a.lastScale ?? 0),
};

const keyOf = (row) => row.key;
const HPA = "HorizontalPodAutoscaler";

function rank(row) {
  return outcomeOf(row.outcome).rank;
}

export class List {
  #feed;
  #rows = document.getElementById("rows");
  #blank = document.getElementById("blank");
  #found = document.getElementById("found");
  #find = document.getElementById("find");
  #sort = document.getElementById("sort");
  #chosen = null;
  #order = [];

  constructor(feed) {
    this.#feed = feed;
    this.#find.addEventListener("input", () => this.draw(true));
    this.#sort.addEventListener("change", () => this.draw(true));
    this.#rows.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      this.#find.focus();
    });
  }

  /** The row at the top, for a start. */
  get first() {
    return this.#order[0] ?? null;
  }

  choose(key) {
    this.#chosen = key;
    this.draw();
  }

  /** The order only changes when it is asked for or rows come and go, so that nothing jumps away
   *  from under the pointer. */
  draw(reorder = false) {
    const words = this.#find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [...this.#feed.rows.values()];
    const matches = all.filter((row) => {
      const text = `${keyOf(row)} ${row.target} ${row.kind} ${outcomeOf(row.outcome).word}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const keys = new Set(matches.map(keyOf));
    if (reorder || keys.size !== this.#order.length || this.#order.some((key) => !keys.has(key))) {
      const by = SORTS[this.#sort.value] ?? SORTS.name;
      matches.sort((a, b) => by(a, b) || keyOf(a).localeCompare(keyOf(b)));
      this.#order = matches.map(keyOf);
    }
    const shown = this.#order.slice(0, MOST).map((key) => this.#feed.rows.get(key));
    keyed(this.#rows, shown, keyOf, makeRow, (row, item) => this.#fill(row, item));
    this.#drawBlank(all.length, matches.length, words.length > 0);
  }

  #fill(element, row) {
    const key = keyOf(row);
    const { parts } = element;
    set(parts.link, "aria-current", key === this.#chosen && "true");
    set(parts.badge, "data-outcome", row.outcome);
    setText(parts.badge, outcomeOf(row.outcome).word);
    setText(parts.target, [row.namespace, row.kind === HPA ? null : row.kind, row.target].filter(Boolean).join(" · "));
    setText(parts.current, String(row.current));
    setText(parts.desired, row.desired === row.current ? "" : `→ ${row.desired}`);
    setText(parts.range, `${row.min}–${row.max}`);
    set(parts.size, "aria-label", `${row.current} ${unitOf(row).toLowerCase()}, ${row.desired} desired, between ${row.min} and ${row.max}`);
    set(parts.trend, "d", trendPath(row.trend));
    setText(parts.reason, row.reason);
    set(parts.reason, "title", row.reason);
    setText(parts.when, row.lastScale ? `scaled ${roughlyAgo(row.lastScale, this.#feed.now())}` : "never scaled");
    keyed(parts.metrics, row.metrics.map((metric, place) => ({ metric, place })), (m) => m.place, makeMetric, fillMetric);
    const bad = row.conditions.filter((c) => isBad(c));
    keyed(parts.conditions, bad, (c) => c.type, () => h("span", { class: "flag" }), (item, c) => {
      setText(item, c.reason || c.type);
      set(item, "title", `${c.type} is ${c.status}: ${c.message}`);
      set(item, "data-level", c.type === "ScalingLimited" ? "note" : "bad");
    });
  }

  #drawBlank(all, found, filtered) {
    this.#blank.hidden = found > 0 && found <= MOST;
    if (found > 0) {
      const rest = found - MOST;
      if (rest > 0) setText(this.#blank, `and ${rest.toLocaleString("en")} more: filter to see them`);
    } else if (!this.#feed.loaded) {
      setText(this.#blank, this.#feed.link === "lost" ? "The server cannot be reached. Trying again…" : "Loading…");
    } else if (filtered && all > 0) {
      setText(this.#blank, `None of ${plural(all, "autoscaler")} matches the filter.`);
    } else {
      setText(this.#blank, "No autoscaler yet. As soon as one is decided on, it appears here.");
    }
    setText(this.#found, filtered ? `${plural(found, "autoscaler")} found` : "");
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...this.#rows.querySelectorAll("a.row")];
    const place = links.indexOf(document.activeElement);
    let next = null;
    if (step) next = links[place + step];
    else if (event.key === "Home") next = links[0];
    else if (event.key === "End") next = links.at(-1);
    else return;
    event.preventDefault();
    next?.focus();
  }
}

/** Conditions that somebody should know of: what should hold and does not, or the other way. */
export function isBad(condition) {
  const wanted = { AbleToScale: "True", ScalingActive: "True", ScalingLimited: "False", "podscale.dev/Conflict": "False", Ready: "True" }[condition.type];
  return wanted !== undefined && condition.status !== wanted;
}

/** The address of an autoscaler's page. */
export function linkTo(key) {
  return `#/${key.split("/").map(encodeURIComponent).join("/")}`;
}

function makeRow(row) {
  const parts = {
    badge: h("span", { class: "badge" }),
    target: h("span", { class: "target" }),
    current: h("b"),
    desired: h("span", { class: "wanted" }),
    range: h("span", { class: "range" }),
    trend: s("path", { "vector-effect": "non-scaling-stroke" }),
    when: h("span", { class: "when" }),
    metrics: h("span", { class: "gauges" }),
    conditions: h("span", { class: "flags" }),
    reason: h("span", { class: "reason" }),
  };
  parts.size = h("span", { class: "size", role: "img" }, h("span", { class: "count" }, parts.current, parts.desired), parts.range);
  parts.link = h(
    "a",
    { class: "row", href: linkTo(keyOf(row)) },
    h("span", { class: "head" }, h("span", { class: "name" }, row.name), parts.badge),
    parts.target,
    h(
      "span",
      { class: "middle" },
      parts.size,
      s("svg", { class: "trend", viewBox: "0 0 100 28", preserveAspectRatio: "none", "aria-hidden": "true" }, parts.trend),
    ),
    parts.metrics,
    h("span", { class: "foot" }, parts.conditions, parts.reason, parts.when),
  );
  const item = h("li", {}, parts.link);
  item.parts = parts;
  return item;
}

function makeMetric() {
  const parts = {
    name: h("span", { class: "gauge-name" }),
    text: h("span", { class: "gauge-text" }),
    bar: h("span", { class: "bar" }),
  };
  const element = h("span", { class: "gauge" }, parts.name, h("span", { class: "track", "aria-hidden": "true" }, parts.bar), parts.text);
  element.parts = parts;
  return element;
}

function fillMetric(element, { metric }) {
  const { parts } = element;
  set(element, "data-state", metric.state);
  setText(parts.name, metric.name);
  setText(parts.text, `${metric.current} / ${metric.target}`);
  set(parts.text, "title", metric.state === "noPods" ? `no pods to be shared among, target ${metric.target} each` : null);
  // The target stands at two thirds of the track, so that being above it can be seen.
  const ratio = metric.value != null && metric.goal ? metric.value / metric.goal : 0;
  parts.bar.style.transform = `scaleX(${Math.min(1, Math.max(0, ratio / 1.5)).toFixed(3)})`;
}

function trendPath(trend) {
  if (!trend.length) return "";
  const top = Math.max(1, ...trend);
  const y = (count) => (26 - (count / top) * 23).toFixed(1);
  const x = (place) => ((place / Math.max(1, trend.length - 1)) * 100).toFixed(1);
  let path = `M0 ${y(trend[0])}`;
  for (let place = 1; place < trend.length; place += 1) path += `H${x(place)}V${y(trend[place])}`;
  return path;
}
