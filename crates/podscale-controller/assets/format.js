// Numbers, times and outcomes in words.

function trim(number, digits) {
  return number.toLocaleString("en", { maximumFractionDigits: digits, useGrouping: false });
}

function stepped(number, base, suffixes) {
  let place = 0;
  const limit = base < 1024 ? base * 10 : base;
  while (Math.abs(number) >= limit && place < suffixes.length - 1) {
    number /= base;
    place += 1;
  }
  return trim(number, Math.abs(number) >= 100 ? 0 : 1) + suffixes[place];
}

/** A number of a unit in few words; where there is none, the words that stand for it. */
export function amount(number, unit) {
  if (number == null) return "unknown";
  if (typeof number === "string") return number;
  switch (unit) {
    case "percent":
      return `${trim(number, 0)}%`;
    case "cores":
      return Math.abs(number) < 1 ? `${trim(number * 1000, 0)}m` : trim(number, 2);
    case "bytes":
      return stepped(number, 1024, ["", "Ki", "Mi", "Gi", "Ti"]);
    default:
      if (number !== 0 && Math.abs(number) < 1) return `${trim(number * 1000, 0)}m`;
      return stepped(number, 1000, ["", "k", "M", "G", "T"]);
  }
}

const two = (number) => String(number).padStart(2, "0");

/** A time of day. */
export function clock(time, seconds = true) {
  const date = new Date(time);
  const short = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return seconds ? `${short}:${two(date.getSeconds())}` : short;
}

/** A length of time in at most two units. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 && minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 4 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** How long ago, roughly: nothing that changes every second once a minute has passed. */
export function roughlyAgo(time, now) {
  const minutes = Math.floor((now - time) / 60_000);
  return minutes < 1 ? ago(time, now) : `${span(minutes * 60_000)} ago`;
}

/** How long ago. */
export function ago(time, now) {
  return now - time < 1500 ? "just now" : `${span(now - time)} ago`;
}

export function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** What is counted: replicas of a target, or Jobs where these are created. */
export function unitOf(row) {
  return row.target === "Jobs" ? "Jobs" : "Replicas";
}

/** Each kind of outcome: a word for the badge, how much it wants to be looked at, and its sign. */
export const OUTCOMES = {
  up: { word: "Scaled up", rank: 2, sign: "M0-6 6.2 5H-6.2z" },
  down: { word: "Scaled down", rank: 3, sign: "M0 6 6.2-5H-6.2z" },
  steady: { word: "Steady", rank: 6, sign: "M4.5 0A4.5 4.5 0 1 1-4.5 0 4.5 4.5 0 1 1 4.5 0z" },
  held: { word: "Held", rank: 4, sign: "M-4.5-5H-1V5H-4.500zM1-5H4.500V5H1z" },
  limited: { word: "Limited", rank: 1, sign: "M-4.5-4.500H4.500V4.500H-4.500z" },
  withheld: { word: "Withheld", rank: 4, sign: "M0-6 6.2 5H-6.2zM0-1.500-2.600 3H2.600z" },
  paused: { word: "Paused", rank: 5, sign: "M-4.5-5H-1V5H-4.500zM1-5H4.500V5H1z" },
  failed: { word: "Failing", rank: 0, sign: "M0-6.5 6.5 0 0 6.5-6.5 0z" },
};

/** The kind of outcome, also of a newer server. */
export function outcomeOf(name) {
  return OUTCOMES[name] ?? { word: name, rank: 5, sign: OUTCOMES.steady.sign };
}

/** A decision as a heading. */
export function headline(decision) {
  const { from, to, outcome } = decision;
  if (decision.rescaled) return `${outcomeOf(outcome).word} from ${from} to ${to}`;
  switch (outcome) {
    case "held":
      return `Held at ${to}`;
    case "limited":
      return `Kept at ${to} by a limit`;
    case "withheld":
      return `Would go from ${from} to ${to}`;
    case "paused":
      return `Paused at ${to || "zero"}`;
    case "failed":
      return from === to ? `Failing at ${from}` : `Failed to go from ${from} to ${to}`;
    default:
      return `Steady at ${to}`;
  }
}
