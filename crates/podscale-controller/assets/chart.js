// Live charts over one time axis: replicas with their bounds and the decisions, then each metric
// against its target.
//
// A point is `[time, current, desired, min, max, value, goal, value, goal, …]`. Where there is no
// value it is null, or words that say why.

import { h, s, set, setText, keyed } from "./dom.js";
import { amount, clock, headline, outcomeOf, unitOf } from "./format.js";
import { placeAt, roomy, ticks, timeTicks } from "./scale.js";

const LEFT = 46;
const RIGHT = 14;
const TOP = 10;
const BOTTOM = 22;

export class Chart {
  element = h("div", { class: "chart" });
  #panes = [];
  #tip = h("div", { class: "tip", role: "tooltip", id: "decision-tip", hidden: true });
  #data = null;
  #hover = null;
  #width = 0;
  #shown = null;
  #onSelect;

  /** `onSelect(decision)` is called when a decision is chosen. */
  constructor(onSelect) {
    this.#onSelect = onSelect;
    this.element.append(this.#tip);
    new ResizeObserver((entries) => {
      this.#width = Math.floor(entries[0].contentRect.width);
      this.draw();
    }).observe(this.element);
    this.element.addEventListener("pointermove", (event) => this.#point(event));
    this.element.addEventListener("pointerleave", () => {
      this.#hover = null;
      this.#crosshair();
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** `data`: `{row, points, decisions, selected, start, end, live}`. */
  update(data) {
    this.#data = data;
    const wanted = 1 + data.row.metrics.length;
    while (this.#panes.length > wanted) this.#panes.pop().element.remove();
    while (this.#panes.length < wanted) {
      const pane = this.#panes.length === 0 ? new Replicas() : new Metric(this.#panes.length - 1);
      this.#panes.push(pane);
      this.element.insertBefore(pane.element, this.#tip);
    }
    this.draw();
  }

  draw() {
    if (!this.#data || this.#width < 80) return;
    const { points, start, end } = this.#data;
    const x = (time) => LEFT + ((time - start) / (end - start)) * (this.#width - LEFT - RIGHT);
    // One point before the window, so that lines come in from the edge.
    const visible = points.slice(Math.max(0, placeAt(points, start)));
    const frame = { ...this.#data, visible, x, width: this.#width };
    this.#panes.forEach((pane, place) => pane.draw(frame, place === this.#panes.length - 1));
    this.#drawMarkers(frame);
    this.#crosshair();
  }

  #drawMarkers({ decisions, visible, start, end, x, selected }) {
    const pane = this.#panes[0];
    const inside = decisions.filter((d) => d.time >= start && d.time <= end);
    // Changes of size always show; the rest only where there is space.
    const taken = inside.filter((d) => d.rescaled || d === selected).map((d) => x(d.time));
    const shown = inside.filter((d) => {
      if (d.rescaled || d === selected) return true;
      const free = taken.every((place) => Math.abs(place - x(d.time)) > 14);
      if (free) taken.push(x(d.time));
      return free;
    });
    this.#shown = shown;
    set(pane.markers, "class", shown.length * 17 > this.#width ? "markers dense" : "markers");
    const reachable = shown.includes(selected) ? selected : shown.at(-1);
    keyed(pane.markers, shown, (d) => d.time, (d) => this.#marker(d), (marker, d) => {
      marker.decision = d;
      const y = pane.y(Math.min(pane.top, d.rescaled ? d.to : (visible[placeAt(visible, d.time)]?.[2] ?? d.to)));
      set(marker, "transform", `translate(${x(d.time).toFixed(1)} ${y.toFixed(1)})`);
      set(marker, "tabindex", d === reachable ? "0" : "-1");
      set(marker, "aria-pressed", d === selected ? "true" : "false");
    });
  }

  #marker(decision) {
    const { sign } = outcomeOf(decision.outcome);
    const marker = s(
      "g",
      {
        class: "marker",
        role: "button",
        "data-outcome": decision.outcome,
        "aria-label": `${clock(decision.time)}: ${headline(decision)}. ${decision.reason}`,
        onclick: () => this.#onSelect(marker.decision),
        onpointerenter: () => this.#showTip(marker),
        onpointerleave: () => this.#hideTip(),
        onfocus: () => this.#showTip(marker),
        onblur: () => this.#hideTip(),
      },
      s("circle", { class: "reach", r: 13 }),
      s("circle", { class: "ring", r: 10.5 }),
      s("path", { d: sign }),
    );
    return marker;
  }

  #showTip(marker) {
    const { decision } = marker;
    this.#tip.replaceChildren(
      h("p", { class: "tip-head", "data-outcome": decision.outcome }, h("b", {}, headline(decision)), h("span", {}, clock(decision.time))),
      h("ol", {}, ...decision.lines.map((line) => h("li", {}, line))),
    );
    this.#tip.hidden = false;
    const box = this.element.getBoundingClientRect();
    const spot = marker.getBoundingClientRect();
    const width = this.#tip.offsetWidth;
    const middle = spot.left + spot.width / 2 - box.left;
    const left = Math.min(Math.max(0, middle - width / 2), Math.max(0, box.width - width));
    const above = spot.top - box.top - this.#tip.offsetHeight - 6;
    // Above where the window has room for it, else below.
    const top = spot.top - this.#tip.offsetHeight - 6 > 0 ? above : spot.bottom - box.top + 6;
    this.#tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    set(marker, "aria-describedby", "decision-tip");
  }

  #hideTip() {
    this.#tip.hidden = true;
  }

  #key(event) {
    const marker = event.target.closest?.(".marker");
    if (!marker) return;
    const place = this.#shown.indexOf(marker.decision);
    let next;
    switch (event.key) {
      case "ArrowLeft":
      case "ArrowUp":
        next = this.#shown[place - 1];
        break;
      case "ArrowRight":
      case "ArrowDown":
        next = this.#shown[place + 1];
        break;
      case "Home":
        next = this.#shown[0];
        break;
      case "End":
        next = this.#shown.at(-1);
        break;
      case "Enter":
      case " ":
        event.preventDefault();
        this.#onSelect(marker.decision);
        return;
      case "Escape":
        this.#hideTip();
        return;
      default:
        return;
    }
    event.preventDefault();
    if (next) this.#panes[0].markers.keyedChildren.get(next.time)?.focus();
  }

  #point(event) {
    const box = this.element.getBoundingClientRect();
    this.#hover = event.clientX - box.left;
    this.#crosshair();
  }

  /** The readings at the pointer, or the latest ones. */
  #crosshair() {
    if (!this.#data) return;
    const { points, start, end, row } = this.#data;
    const inner = this.#width - LEFT - RIGHT;
    const inside = this.#hover != null && this.#hover >= LEFT && this.#hover <= this.#width - RIGHT;
    const time = inside ? start + ((this.#hover - LEFT) / inner) * (end - start) : end;
    const point = points[placeAt(points, time)];
    for (const pane of this.#panes) {
      set(pane.cross, "d", inside ? `M${this.#hover.toFixed(1)} ${TOP}V${pane.height - BOTTOM}` : null);
      pane.read(point, row, inside ? time : null);
    }
  }
}

/** What both kinds of pane share: a caption with readings, axes, and a place to draw. */
class Pane {
  grid = s("g", { class: "grid" });
  axis = s("g", { class: "axis" });
  cross = s("path", { class: "cross" });
  title = h("span", { class: "pane-title" });
  readings = h("span", { class: "readings" });
  top = 1;

  constructor(height, kind) {
    this.height = height;
    this.svg = s("svg", { class: "pane-svg", height, role: "group" });
    this.element = h("figure", { class: `pane ${kind}` }, h("figcaption", {}, this.title, this.readings), this.svg);
  }

  y(value) {
    const inner = this.height - TOP - BOTTOM;
    return TOP + inner - (value / this.top) * inner;
  }

  axes({ x, start, end, width }, label, whole, last) {
    set(this.svg, "width", width);
    set(this.svg, "viewBox", `0 0 ${width} ${this.height}`);
    const levels = ticks(this.top, this.height > 150 ? 4 : 3, whole).filter((value) => value <= this.top);
    keyed(this.grid, levels, (v) => v, () => s("path"), (line, v) => {
      set(line, "d", `M${LEFT} ${this.y(v).toFixed(1)}H${width - RIGHT}`);
    });
    const { step, list } = timeTicks(start, end, Math.max(2, (width - LEFT) / 95));
    const labels = levels.map((v) => ({ key: `y${v}`, x: LEFT - 8, y: this.y(v) + 4, text: label(v), end: true }));
    if (last || this.height > 150) {
      for (const time of list) {
        const place = x(time);
        if (place < LEFT + 14 || place > width - 24) continue;
        labels.push({ key: `x${time}`, x: place, y: this.height - 5, text: clock(time, step < 60_000) });
      }
    }
    keyed(this.axis, labels, (l) => l.key, () => s("text"), (text, l) => {
      set(text, "x", l.x.toFixed(1));
      set(text, "y", l.y.toFixed(1));
      set(text, "text-anchor", l.end ? "end" : "middle");
      setText(text, l.text);
    });
  }

  reading(list) {
    keyed(this.readings, list, (r) => r.name, (r) => h("span", { class: `reading ${r.kind}` }, h("i", { "aria-hidden": "true" }), h("span", {}), h("b")), (element, r) => {
      setText(element.children[1], r.name);
      setText(element.children[2], r.text);
    });
  }
}

/** The number, if it is one. */
function number(value) {
  return typeof value === "number" ? value : null;
}

/** A line that keeps each value until the next point, or joins the points; breaks at gaps. */
function path(visible, x, y, pick, { steps, until }) {
  let text = "";
  let open = false;
  let last = null;
  for (const point of visible) {
    const value = number(pick(point));
    if (value == null) {
      open = false;
      last = null;
      continue;
    }
    const px = x(point[0]).toFixed(1);
    const py = y(value).toFixed(1);
    if (!open) text += `M${px} ${py}`;
    else text += steps ? `H${px}V${py}` : `L${px} ${py}`;
    open = true;
    last = value;
  }
  if (last != null && until != null) text += `H${until.toFixed(1)}`;
  return text;
}

class Replicas extends Pane {
  markers = s("g", { class: "markers" });
  #clip = s("rect");
  #band = s("path", { class: "band" });
  #bounds = s("path", { class: "bounds" });
  #desired = s("path", { class: "line desired" });
  #current = s("path", { class: "line current" });
  #fill = s("path", { class: "fill current" });

  constructor() {
    super(230, "replicas");
    const inside = s("g", { "clip-path": "url(#inside-replicas)" }, this.#band, this.#fill, this.#bounds, this.#desired, this.#current);
    this.svg.append(s("clipPath", { id: "inside-replicas" }, this.#clip), this.grid, inside, this.cross, this.axis, this.markers);
  }

  draw(frame, last) {
    const { visible, x, row, live, end, width } = frame;
    setText(this.title, unitOf(row));
    set(this.svg, "aria-label", `${unitOf(row)} over time; arrow keys move between decisions`);
    const peak = Math.max(1, row.current, row.desired, ...visible.map((p) => Math.max(p[1], p[2], p[3])));
    const bound = Math.max(row.max, ...visible.map((p) => p[4]));
    this.top = roomy(peak, true);
    // The maximum is shown where that does not press everything else flat.
    if (bound <= peak * 2.2) this.top = Math.max(bound * 1.06, this.top);
    this.axes(frame, String, true, last);
    set(this.#clip, "x", LEFT);
    set(this.#clip, "y", TOP - 4);
    set(this.#clip, "width", Math.max(0, width - LEFT - RIGHT));
    set(this.#clip, "height", this.height - TOP - BOTTOM + 8);
    const y = (value) => this.y(value);
    const until = live ? x(end) : null;
    const line = (pick) => path(visible, x, y, pick, { steps: true, until });
    set(this.#current, "d", line((p) => p[1]));
    set(this.#desired, "d", line((p) => p[2]));
    const upper = line((p) => p[4]);
    const lower = line((p) => p[3]);
    set(this.#bounds, "d", `${upper}${lower}`);
    if (!visible.length) {
      set(this.#band, "d", null);
      set(this.#fill, "d", null);
      return;
    }
    const edges = [x(visible[0][0]), until ?? x(visible.at(-1)[0])].map((edge) => edge.toFixed(1));
    const floor = y(0).toFixed(1);
    // The band between the bounds: what lies under the upper one, without what lies under the lower.
    const under = (text) => `${text}V${floor}H${edges[0]}z`;
    set(this.#band, "d", under(upper) + under(lower));
    set(this.#band, "fill-rule", "evenodd");
    set(this.#fill, "d", under(line((p) => p[1])));
  }

  read(point, row, time) {
    const [, current, desired, min, max] = point ?? [0, row.current, row.desired, row.min, row.max];
    this.reading([
      { name: "current", kind: "current", text: String(current) },
      { name: "desired", kind: "desired", text: String(desired) },
      { name: "bounds", kind: "bounds", text: `${min}–${max}` },
      { name: "at", kind: "at", text: time == null ? "now" : clock(time) },
    ]);
  }
}

class Metric extends Pane {
  #place;
  #clip = s("rect");
  #value = s("path", { class: "line value" });
  #fill = s("path", { class: "fill value" });
  #goal = s("path", { class: "line goal" });

  constructor(place) {
    super(150, `metric tone-${place % 4}`);
    this.#place = 5 + 2 * place;
    const id = `inside-${place}`;
    const inside = s("g", { "clip-path": `url(#${id})` }, this.#fill, this.#value, this.#goal);
    this.svg.append(s("clipPath", { id }, this.#clip), this.grid, inside, this.cross, this.axis);
  }

  #metric(row) {
    return row.metrics[(this.#place - 5) / 2];
  }

  draw(frame, last) {
    const { visible, x, row, live, end, width } = frame;
    const metric = this.#metric(row);
    if (!metric) return;
    const place = this.#place;
    setText(this.title, metric.name);
    set(this.svg, "aria-label", `${metric.name} over time against its target`);
    const peak = Math.max(metric.goal ?? 0, ...visible.map((p) => Math.max(number(p[place]) ?? 0, p[place + 1] ?? 0)));
    this.top = roomy(peak, false);
    this.axes(frame, (value) => amount(value, metric.unit), false, last);
    set(this.#clip, "x", LEFT);
    set(this.#clip, "y", TOP - 4);
    set(this.#clip, "width", Math.max(0, width - LEFT - RIGHT));
    set(this.#clip, "height", this.height - TOP - BOTTOM + 8);
    const y = (value) => this.y(value);
    const until = live ? x(end) : null;
    const values = path(visible, x, y, (p) => p[place], { steps: false, until });
    set(this.#value, "d", values);
    set(this.#goal, "d", path(visible, x, y, (p) => p[place + 1], { steps: true, until }));
    // Filled only where the line has no gaps: an area over a gap would claim what nobody measured.
    const whole = values && values.lastIndexOf("M") === 0;
    const first = visible.find((p) => number(p[place]) != null);
    set(this.#fill, "d", whole ? `${values}V${y(0).toFixed(1)}H${x(first[0]).toFixed(1)}z` : null);
  }

  read(point, row) {
    const metric = this.#metric(row);
    if (!metric) return;
    const place = this.#place;
    this.reading([
      { name: "value", kind: "value", text: point ? amount(point[place], metric.unit) : metric.current },
      { name: "target", kind: "goal", text: amount(point?.[place + 1] ?? metric.goal, metric.unit) },
    ]);
  }
}
