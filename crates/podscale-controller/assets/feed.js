// The state of the cluster as the server has it, kept up to date by its events.

const KEEP = 4000;
const SILENCE = 20_000;

export class Feed extends EventTarget {
  /** All autoscalers by their keys. */
  rows = new Map();
  /** The watched autoscaler's past: `{key, latest, points, decisions}`, or null while unknown. */
  past = null;
  /** `connecting`, `live` or `lost`. */
  link = "connecting";
  /** Whether the list has been received at all. */
  loaded = false;

  #source = null;
  #watched = null;
  #last = null;
  #base = null;
  #heard = 0;
  #retry = 0;

  constructor() {
    super();
    setInterval(() => this.#check(), 5000);
    // A page that comes back from sleep does not wait for the next check.
    for (const name of ["online", "pageshow"]) addEventListener(name, () => this.#check());
  }

  /** The cluster's time, which may run faster than the wall clock. */
  now() {
    if (!this.#base) return Date.now();
    return this.#base.now + (performance.now() - this.#base.at) * this.#base.speed;
  }

  get speed() {
    return this.#base?.speed ?? 1;
  }

  /** Follows one autoscaler closely, or none. */
  watch(key) {
    if (this.#source && key === this.#watched) return;
    this.#watched = key;
    this.past = null;
    this.#open();
    this.#notify("past");
  }

  #open() {
    this.#source?.close();
    clearTimeout(this.#retry);
    const query = new URLSearchParams();
    if (this.#watched) query.set("watch", this.#watched);
    if (this.#last) query.set("since", this.#last);
    const source = new EventSource(`/api/events?${query}`);
    this.#source = source;
    this.#heard = performance.now();
    source.onerror = () => {
      if (source !== this.#source) return;
      this.#setLink("lost");
      // After an answer that is no stream the browser gives up by itself.
      if (source.readyState === EventSource.CLOSED) this.#retry = setTimeout(() => this.#open(), 3000);
    };
    const on = (name, handle) =>
      source.addEventListener(name, (event) => {
        if (source !== this.#source) return;
        const data = JSON.parse(event.data);
        this.#heard = performance.now();
        this.#base = { now: data.now, speed: data.speed, at: performance.now() };
        if (event.lastEventId) this.#last = event.lastEventId;
        handle(data);
        this.#setLink("live");
      });
    on("state", (data) => {
      this.rows.clear();
      this.loaded = true;
      this.#apply(data);
    });
    on("changes", (data) => this.#apply(data));
    on("past", (data) => {
      this.past = data.past ?? { key: this.#watched, missing: true, points: [], decisions: [] };
      this.#notify("past");
    });
    on("more", (data) => {
      this.#extend(data.past);
      this.#notify("past");
    });
    on("tick", () => {});
  }

  #apply(data) {
    for (const row of data.rows ?? []) this.rows.set(row.key, row);
    for (const key of data.removed ?? []) {
      this.rows.delete(key);
      if (this.past?.key === key) this.past.missing = true;
    }
    this.#notify("rows");
  }

  #extend(more) {
    if (!this.past || this.past.missing) {
      this.past = more;
      return;
    }
    this.past.latest = more.latest;
    this.past.points.push(...more.points);
    this.past.decisions.push(...more.decisions);
    const spare = this.past.decisions.length - 500;
    if (spare > 0) this.past.decisions.splice(0, spare);
    if (this.past.points.length > KEEP) {
      const half = this.past.points.length / 2;
      this.past.points = this.past.points.filter((_, place) => place > half || place % 2 === 0);
    }
  }

  /** A connection can die without a word; silence for long means that it did. */
  #check() {
    if (this.#source && performance.now() - this.#heard > SILENCE) {
      this.#setLink("lost");
      this.#open();
    }
  }

  #setLink(link) {
    if (this.link === link) return;
    this.link = link;
    this.#notify("link");
  }

  #notify(name) {
    this.dispatchEvent(new Event(name));
  }
}
