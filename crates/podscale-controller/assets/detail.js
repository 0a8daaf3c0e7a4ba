// One autoscaler: where it stands, its charts, its decisions explained, its conditions.

import { Chart } from "./chart.js";
import { h, set, setText, keyed } from "./dom.js";
import { ago, clock, headline, outcomeOf, span, unitOf } from "./format.js";
import { isBad } from "./list.js";

const MINUTE = 60_000;
const RANGES = [
  { name: "5 min", long: "5 minutes", length: 5 * MINUTE },
  { name: "15 min", long: "15 minutes", length: 15 * MINUTE },
  { name: "1 h", long: "hour", length: 60 * MINUTE },
  { name: "6 h", long: "6 hours", length: 360 * MINUTE },
  { name: "All", long: "", length: Infinity },
];
const LOG = 100;

export class Detail {
  #feed;
  #root = document.getElementById("detail");
  #key = null;
  #range = RANGES[1];
  #selected = null;
  #parts = null;
  #chart = null;

  constructor(feed) {
    this.#feed = feed;
    this.#build();
  }

  /** Shows another autoscaler, or none. */
  show(key) {
    if (key === this.#key) return;
    this.#key = key;
    this.#selected = null;
    this.#root.scrollTop = 0;
    this.draw();
  }

  #build() {
    this.#chart = new Chart((decision) => this.#select(decision, false));
    const parts = {
      note: h("p", { class: "note" }),
      name: h("h2", { class: "title", id: "title" }),
      badge: h("span", { class: "badge" }),
      target: h("p", { class: "subtitle" }),
      unit: h("dt"),
      current: h("dd", { class: "big" }),
      desired: h("dd"),
      bounds: h("dd"),
      scaled: h("dd"),
      metrics: h("ul", { class: "facts" }),
      ranges: h("div", { class: "ranges", role: "group", "aria-label": "Time range" }),
      why: h("section", { class: "card why", "aria-labelledby": "why-title" }),
      whyTitle: h("h3", { id: "why-title" }),
      whyWhen: h("p", { class: "why-when" }),
      whyReason: h("p", { class: "why-reason" }),
      whyLines: h("ol", { class: "lines" }),
      older: h("button", { type: "button", class: "step", "aria-label": "Earlier decision", title: "Earlier decision", onclick: () => this.#step(-1) }, "‹"),
      newer: h("button", { type: "button", class: "step", "aria-label": "Later decision", title: "Later decision", onclick: () => this.#step(1) }, "›"),
      latest: h("button", { type: "button", class: "step wide", onclick: () => this.#select(null) }, "Now"),
      decision: h("div"),
      log: h("ol", { class: "log" }),
      logEmpty: h("p", { class: "empty" }, "Nothing has changed yet. Each change of size appears here with its reasons."),
      conditions: h("ul", { class: "conditions" }),
    };
    const stat = (name, value) => h("div", {}, h("dt", {}, name), value);
    parts.body = h(
      "article",
      { class: "body", "aria-labelledby": "title" },
      h("a", { class: "back", href: "#/" }, "‹ All autoscalers"),
      h(
        "header",
        { class: "card summary" },
        h("div", { class: "who" }, h("div", { class: "who-line" }, parts.name, parts.badge), parts.target),
        h("dl", { class: "stats" }, h("div", {}, parts.unit, parts.current), stat("Desired", parts.desired), stat("Bounds", parts.bounds), stat("Last scaled", parts.scaled)),
        parts.metrics,
      ),
      h("section", { class: "card charts", "aria-label": "Charts" }, h("div", { class: "card-head" }, h("h3", {}, "Over time"), parts.ranges), this.#chart.element),
      parts.why,
      h("section", { class: "card decisions", "aria-labelledby": "log-title" }, h("h3", { id: "log-title" }, "Decisions"), parts.logEmpty, parts.log),
      h("section", { class: "card", "aria-labelledby": "conditions-title" }, h("h3", { id: "conditions-title" }, "Conditions"), parts.conditions),
    );
    parts.decision.append(parts.whyWhen, parts.whyReason, parts.whyLines);
    parts.why.append(
      h("div", { class: "card-head" }, parts.whyTitle, h("div", { class: "steps" }, parts.older, parts.newer, parts.latest)),
      parts.decision,
    );
    for (const range of RANGES) {
      const button = h("button", { type: "button", "aria-label": range.long ? `Last ${range.long}` : "Everything" }, range.name);
      button.addEventListener("click", () => {
        this.#range = range;
        this.draw();
      });
      range.button = button;
      parts.ranges.append(button);
    }
    this.#parts = parts;
    this.#root.append(parts.note, parts.body);
  }

  #select(decision, focus = false) {
    this.#selected = decision;
    this.draw();
    const item = this.#parts.log.querySelector("[aria-pressed=true]");
    if (focus) item?.focus();
    // Only the log scrolls, never the page.
    if (item) {
      const { log } = this.#parts;
      const [box, place] = [log.getBoundingClientRect(), item.getBoundingClientRect()];
      if (place.top < box.top) log.scrollTop -= box.top - place.top;
      if (place.bottom > box.bottom) log.scrollTop += place.bottom - box.bottom;
    }
  }

  #step(by) {
    const { decisions } = this.#feed.past ?? { decisions: [] };
    const place = this.#selected ? decisions.indexOf(this.#selected) : decisions.length;
    const next = decisions[place + by];
    if (next || by > 0) this.#select(next ?? null);
  }

  draw() {
    const { note, body } = this.#parts;
    const row = this.#feed.rows.get(this.#key);
    const past = this.#feed.past?.key === this.#key ? this.#feed.past : null;
    body.hidden = !row;
    note.hidden = Boolean(row);
    if (!row) {
      setText(note, this.#blankText());
      return;
    }
    this.#drawSummary(row);
    this.#drawChart(row, past);
    this.#drawWhy(past);
    this.#drawLog(past);
    this.#drawConditions(row);
  }

  #blankText() {
    if (!this.#key) return this.#feed.loaded ? "Choose an autoscaler to see what it does and why." : "";
    if (!this.#feed.loaded) return this.#feed.link === "lost" ? "The server cannot be reached." : "Loading…";
    return `There is no autoscaler ${this.#key}, or nothing has been decided for it yet.`;
  }

  #drawSummary(row) {
    const parts = this.#parts;
    set(parts.badge, "data-outcome", row.outcome);
    setText(parts.name, row.name);
    setText(parts.badge, outcomeOf(row.outcome).word);
    setText(parts.target, `${row.kind} in ${row.namespace}, scales ${row.target}`);
    setText(parts.unit, unitOf(row));
    setText(parts.current, String(row.current));
    setText(parts.desired, String(row.desired));
    setText(parts.bounds, `${row.min} to ${row.max}`);
    setText(parts.scaled, row.lastScale ? ago(row.lastScale, this.#feed.now()) : "never");
    const states = { above: "above target", near: "near target", below: "below target", noPods: "no pods to be shared among", unread: "cannot be read", notAsked: "not asked now" };
    keyed(parts.metrics, row.metrics.map((metric, place) => ({ metric, place })), (m) => m.place, () => h("li", {}, h("span", { class: "fact-name" }), h("b"), h("span"), h("em")), (item, { metric, place }) => {
      const [name, value, goal, state] = item.children;
      set(item, "class", `tone-${place % 4}`);
      set(item, "data-state", metric.state);
      setText(name, metric.name);
      // The state says it where there are no pods.
      setText(value, metric.state === "noPods" ? "" : metric.current);
      setText(goal, metric.state === "noPods" ? `target ${metric.target} each` : `of ${metric.target}`);
      setText(state, states[metric.state] ?? metric.state);
    });
  }

  #drawChart(row, past) {
    const points = past?.points ?? [];
    const live = this.#feed.link === "live" && !past?.missing;
    const end = live || !points.length ? this.#feed.now() : points.at(-1)[0];
    const first = points[0]?.[0] ?? end - MINUTE;
    const whole = Math.max(MINUTE, end - first);
    const length = Math.min(this.#range.length, Math.max(whole, 2 * MINUTE));
    for (const range of RANGES) set(range.button, "aria-pressed", range === this.#range ? "true" : "false");
    set(this.#chart.element, "aria-busy", past ? "false" : "true");
    this.#chart.update({
      row, points, live, end, start: end - length,
      decisions: past?.decisions ?? [],
      selected: this.#selected,
    });
  }

  #drawWhy(past) {
    const parts = this.#parts;
    const decisions = past?.decisions ?? [];
    if (this.#selected && past && !decisions.includes(this.#selected)) {
      // After a new connection the same decision comes as another value.
      this.#selected = decisions.find((d) => d.time === this.#selected.time) ?? null;
    }
    const decision = this.#selected ?? past?.latest;
    const place = this.#selected ? decisions.indexOf(this.#selected) : decisions.length;
    parts.older.disabled = place <= 0;
    parts.newer.disabled = !this.#selected;
    set(parts.latest, "aria-pressed", this.#selected ? "false" : "true");
    set(parts.why, "data-outcome", decision?.outcome);
    // A chosen decision is read out; each new pass is not.
    set(parts.decision, "aria-live", this.#selected ? "polite" : "off");
    setText(parts.whyTitle, decision ? headline(decision) : "Why this size");
    const when = decision && `${clock(decision.time)}, ${ago(decision.time, this.#feed.now())}`;
    setText(parts.whyWhen, decision ? (this.#selected ? when : `The latest pass, at ${clock(decision.time)}`) : "Loading…");
    setText(parts.whyReason, decision?.reason ?? "");
    keyed(parts.whyLines, (decision?.lines ?? []).map((line, at) => ({ line, at })), (l) => l.at, () => h("li"), (item, l) => setText(item, l.line));
  }

  #drawLog(past) {
    const parts = this.#parts;
    const recent = (past?.decisions ?? []).slice(-LOG).reverse();
    parts.logEmpty.hidden = !past || recent.length > 0;
    const now = this.#feed.now();
    keyed(parts.log, recent, (d) => d.time, (d) => logItem(d, (decision) => this.#select(decision)), (item, d) => {
      item.decision = d;
      set(item.firstElementChild, "aria-pressed", d === this.#selected ? "true" : "false");
      setText(item.when, now - d.time < 1500 ? "now" : span(now - d.time));
    });
  }

  #drawConditions(row) {
    const parts = this.#parts;
    keyed(parts.conditions, row.conditions, (c) => c.type, () => h("li", {}, h("span", { class: "dot", "aria-hidden": "true" }), h("b"), h("span", { class: "state" }), h("span", { class: "reason" }), h("p"), h("span", { class: "since" })), (item, c) => {
      const [, type, status, reason, message, since] = item.children;
      set(item, "data-level", isBad(c) ? (c.type === "ScalingLimited" ? "note" : "bad") : "good");
      setText(type, c.type);
      setText(status, c.status);
      setText(reason, c.reason);
      setText(message, c.message);
      setText(since, c.since ? `for ${span(this.#feed.now() - c.since)}` : "");
    });
  }
}

function logItem(decision, onChoose) {
  const when = h("span", { class: "log-when" });
  const item = h(
    "li",
    {},
    h(
      "button",
      { type: "button", onclick: () => onChoose(item.decision) },
      h("span", { class: "log-size" }, decision.from === decision.to ? String(decision.to) : `${decision.from} → ${decision.to}`),
      h("span", { class: "log-what" }, h("span", { class: "badge", "data-outcome": decision.outcome }, outcomeOf(decision.outcome).word), h("span", { class: "log-reason" }, decision.reason)),
      when,
    ),
  );
  item.when = when;
  return item;
}
