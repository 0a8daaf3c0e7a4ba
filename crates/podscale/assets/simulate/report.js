// Charts of simulated runs: load and capacity, sizes, and what went wrong, over one time axis. Pointing
// at a moment shows the numbers and the last decision with its reasons.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 150;
const MOST_MARKS = 400;
const LEFT = 46;
const BOTTOM = 20;
const TONES = ["--brand", "--tone-0", "--tone-1", "--tone-2", "--tone-3", "--warn", "--down"];
const HEADINGS = [
  "policy", "violated", "worst minute", "p95", "p99", "pod-hours", "vs oracle", "reversals/h", "started",
  "too small", "oldest",
];
// The columns of a point.
const [AT, OFFERED, CAPACITY, REPLICAS, READY, WAITING, BAD] = [0, 1, 2, 3, 4, 5, 6];

const data = JSON.parse(document.getElementById("data").textContent);

function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function s(name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function amount(value) {
  if (Number.isInteger(value)) return String(value);
  if (value >= 100) return value.toFixed(0);
  if (value >= 10) return value.toFixed(1);
  return value.toFixed(2);
}

// The next round number, so that half of it is one as well.
function round(value) {
  const digit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((part) => part * digit).find((top) => top >= value);
}

function clock(seconds) {
  const days = Math.floor(seconds / 86400);
  const rest = new Date((seconds % 86400) * 1000).toISOString().slice(11, 19);
  return days > 0 ? `${days}d ${rest}` : rest;
}

function scores(rows, onChoose) {
  const body = h("tbody");
  rows.forEach((row, place) => {
    const swatch = h("span", { class: "swatch", style: `background: var(${TONES[place % TONES.length]})` });
    const cells = row.map((cell, column) => (column === 0 ? h("td", {}, swatch, cell) : h("td", {}, cell)));
    const line = h("tr", { "aria-selected": "false", tabindex: "0" }, ...cells);
    const choose = () => {
      for (const other of body.children) other.setAttribute("aria-selected", String(other === line));
      onChoose(place);
    };
    line.addEventListener("click", choose);
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") choose();
    });
    body.append(line);
  });
  const head = h("thead", {}, h("tr", {}, ...HEADINGS.map((heading) => h("th", {}, heading))));
  return h("div", { class: "scroll" }, h("table", {}, head, body));
}

class Pane {
  constructor(caption, length) {
    this.length = length;
    this.width = 1000;
    this.svg = s("svg", { role: "img", "aria-label": caption });
    this.element = h("figure", {}, h("figcaption", {}, caption), this.svg);
  }

  x(seconds) {
    return LEFT + (seconds / this.length) * (this.width - LEFT);
  }

  y(value) {
    return (HEIGHT - BOTTOM) * (1 - value / this.top) + 4;
  }

  begin(top) {
    this.top = top > 0 ? round(top) : 1;
    this.width = Math.max(200, this.svg.clientWidth);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.replaceChildren();
    for (const part of [0, 0.5, 1]) {
      const y = this.y(this.top * part);
      this.svg.append(s("line", { class: "grid", x1: LEFT, x2: this.width, y1: y, y2: y }));
      this.svg.append(s("text", { x: 0, y: y + 4 }, amount(this.top * part)));
    }
    for (const part of [0, 0.25, 0.5, 0.75]) {
      const seconds = this.length * part;
      this.svg.append(s("text", { x: this.x(seconds), y: HEIGHT - 2 }, clock(seconds)));
    }
  }

  line(points, column, tone, extra = "") {
    const path = points.map((point, place) => {
      const x = this.x(point[AT]).toFixed(1);
      const y = this.y(point[column]).toFixed(1);
      return place === 0 ? `M${x} ${y}` : `H${x}V${y}`;
    });
    const style = tone ? `stroke: var(${tone})` : "";
    this.svg.append(s("path", { class: `line ${extra}`, d: path.join(""), style }));
  }

  bars(points, column) {
    const width = Math.max(1, (this.width - LEFT) / Math.max(1, points.length));
    for (const point of points.filter((point) => point[column] > 0)) {
      const y = this.y(point[column]);
      const height = Math.max(1, this.y(0) - y);
      this.svg.append(s("rect", { class: "bad", x: this.x(point[AT]), y: this.y(0) - height, width, height }));
    }
  }

  // Where the size changed, as long as single changes can be told apart.
  marks(changes) {
    if (changes.length > MOST_MARKS) return;
    for (const [at, from, to] of changes) {
      const tone = to > from ? "up" : "down";
      this.svg.append(s("circle", { class: `mark ${tone}`, cx: this.x(at), cy: this.y(to), r: 3 }));
    }
  }

  cross(seconds) {
    this.svg.querySelector(".cross")?.remove();
    if (seconds === null) return;
    const x = this.x(seconds);
    this.svg.append(s("line", { class: "cross", x1: x, x2: x, y1: 0, y2: HEIGHT - BOTTOM }));
  }
}

class Trial {
  constructor(trial) {
    this.trial = trial;
    this.chosen = 0;
    this.panes = ["Load (grey) and what ready pods could serve, a second", "Size, changes of it, and ready pods (dashed)", "Violated, %"].map(
      (caption) => new Pane(caption, trial.seconds),
    );
    this.tip = h("div", { class: "tip", role: "status", hidden: "" });
    this.table = scores(trial.scores, (place) => {
      this.chosen = place;
      this.draw();
    });
    const notes = h("ul", { class: "notes" }, ...trial.notes.map((note) => h("li", {}, note)));
    const charts = h("div", { style: "position: relative" }, ...this.panes.map((pane) => pane.element), this.tip);
    this.element = h("section", {}, h("h2", {}, trial.heading), h("p", { class: "about" }, trial.about), this.table, charts, notes);
    charts.addEventListener("pointermove", (event) => this.point(event, charts));
    charts.addEventListener("pointerleave", () => this.leave());
    this.table.querySelector("tbody tr")?.setAttribute("aria-selected", "true");
    // Draws as soon as it is on the page, and whenever it gets another width.
    new ResizeObserver(() => this.draw()).observe(charts);
  }

  draw() {
    const { policies } = this.trial;
    const chosen = policies[this.chosen];
    const tone = TONES[this.chosen % TONES.length];
    const top = (points, column) => points.reduce((most, point) => Math.max(most, point[column]), 0);
    const [load, size, bad] = this.panes;
    load.begin(Math.max(top(chosen.points, OFFERED), Math.min(top(chosen.points, CAPACITY), 3 * top(chosen.points, OFFERED))));
    load.line(chosen.points, OFFERED, null, "offered");
    load.line(chosen.points, CAPACITY, tone);
    size.begin(Math.max(...policies.map((policy) => top(policy.points, REPLICAS))));
    policies.forEach((policy, place) => {
      if (place !== this.chosen) size.line(policy.points, REPLICAS, TONES[place % TONES.length], "faint");
    });
    size.line(chosen.points, READY, tone, "ready");
    size.line(chosen.points, REPLICAS, tone);
    size.marks(chosen.changes);
    bad.begin(Math.max(1, top(chosen.points, BAD)));
    bad.bars(chosen.points, BAD);
  }

  point(event, charts) {
    const box = this.panes[0].svg.getBoundingClientRect();
    const width = this.panes[0].width;
    const at = ((event.clientX - box.left) / box.width) * width;
    const seconds = ((at - LEFT) / (width - LEFT)) * this.trial.seconds;
    if (seconds < 0 || seconds > this.trial.seconds) {
      this.leave();
      return;
    }
    const chosen = this.trial.policies[this.chosen];
    const point = chosen.points.findLast((point) => point[AT] <= seconds);
    if (!point) return;
    const change = chosen.changes.findLast((change) => change[0] <= seconds);
    const lines = [
      h("p", {}, h("strong", {}, `${chosen.name} at ${clock(seconds)}`)),
      h("p", {}, `${amount(point[OFFERED])} a second came, ${amount(point[CAPACITY])} could be served`),
      h("p", {}, `size ${amount(point[REPLICAS])}, ready ${amount(point[READY])}, waiting ${amount(point[WAITING])}`),
      h("p", {}, `${amount(point[BAD])}% violated`),
    ];
    if (change) {
      const [when, from, to, why] = change;
      lines.push(h("p", {}, `last change at ${clock(when)}: ${from} → ${to}`));
      lines.push(h("ul", {}, ...why.map((line) => h("li", {}, line))));
    }
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const around = charts.getBoundingClientRect();
    const left = event.clientX - around.left + 14;
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${left + wide > around.width ? Math.max(0, left - wide - 28) : left}px`;
    this.tip.style.top = `${event.clientY - around.top + 14}px`;
    for (const pane of this.panes) pane.cross(seconds);
  }

  leave() {
    this.tip.hidden = true;
    for (const pane of this.panes) pane.cross(null);
  }
}

document.getElementById("title").textContent = data.title;
const main = document.getElementById("main");
main.replaceChildren(...data.trials.map((trial) => new Trial(trial).element));
if (data.overall.length > 0) {
  main.prepend(h("section", {}, h("h2", {}, `Over all ${data.trials.length} trials`), scores(data.overall, () => {})));
}
