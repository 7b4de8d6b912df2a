// The sheet about one key: why it is as it is, what it did in the last hour, what can be done.
import { byId, element, setText } from "/dom.js";
import { keyPath, read } from "/api.js";
import { closeKey, openKey } from "/acts.js";
import { Chart, NO_SERIES, sum } from "/chart.js";
import { stateOf } from "/rows.js";
import { clock, count, duration, left, serverNow } from "/words.js";

const FACTS = [
  ["Policy", (k) => k.policy || "–"],
  ["Backoff level", (k) => String(k.level)],
  ["Delay", (k) => (k.delay_ms > 0 ? duration(k.delay_ms) : "none")],
  ["In flight", (k) => count(k.in_flight)],
  ["Held", (k) => count(k.held)],
  ["Successes", (k) => count(k.counts.success)],
  ["Rate limited", (k) => count(k.counts.rate_limited)],
  ["Anti-bot", (k) => count(k.counts.anti_bot)],
  ["Server errors", (k) => count(k.counts.server_error)],
  ["Network errors", (k) => count(k.counts.network)],
  ["Refused by Sluice", (k) => count(k.counts.refused)],
  ["Times opened", (k) => count(k.counts.trips)],
];

export class Detail {
  constructor(changed) {
    this.changed = changed;
    this.node = byId("detail");
    this.key = null;
    this.make();
    this.node.addEventListener("close", () => { this.key = null; });
    this.node.addEventListener("click", (event) => { if (event.target === this.node) this.node.close(); });
    setInterval(() => this.tick(), 250);
  }

  make() {
    this.title = element("h2", { id: "detail-title" });
    this.state = element("span", { class: "state" });
    this.big = element("p", { class: "big", "aria-hidden": "true" });
    this.sentence = element("p", { class: "sentence" });
    this.said = element("blockquote");
    this.extra = element("p", { class: "none" });
    this.openButton = element("button", { type: "button", class: "danger", on: { click: () => openKey(this.key, this.changed) } }, "Open…");
    this.closeButton = element("button", { type: "button", on: { click: () => closeKey(this.key, this.changed) } }, "Close…");
    this.problem = element("p", { class: "error", role: "alert" });
    this.plots = [["Requests", "requests"], ["Refused", "refused"], ["Delay", "delay"]].map(([word, part]) => {
      const chart = new Chart(460, 74, [part]);
      const note = element("span");
      return { part, chart, note, node: element("section", {}, element("h3", {}, word, note), element("div", { class: "plot" }, chart.node)) };
    });
    this.facts = FACTS.map(() => element("dd"));
    this.node.append(
      element("header", {}, this.title, element("button", { type: "button", class: "quiet", "aria-label": "Close this sheet", on: { click: () => this.node.close() } }, "✕")),
      element("div", {}, this.state), this.big, this.sentence, this.said, this.extra,
      element("div", { class: "buttons" }, this.closeButton, this.openButton), this.problem,
      ...this.plots.map(({ node }) => node),
      element("dl", { class: "facts" }, ...FACTS.map(([word], i) => element("div", {}, element("dt", {}, word), this.facts[i]))));
  }

  open(row) {
    this.key = row.key;
    setText(this.problem, "");
    this.show(row);
    if (!this.node.open) this.node.showModal();
    this.refresh();
  }

  async refresh() {
    const { key } = this;
    if (key === null) return;
    try {
      const data = await read(keyPath(key));
      if (this.key === key) this.show(data);
      setText(this.problem, "");
    } catch (problem) {
      setText(this.problem, problem.message);
    }
  }

  show(data) {
    this.data = data;
    const state = stateOf(data);
    setText(this.title, data.key);
    this.state.dataset.state = state;
    setText(this.state, state + (data.observed_only ? ", only observed" : ""));
    setText(this.sentence, data.sentence);
    this.said.hidden = !data.said;
    setText(this.said, data.said);
    const extra = [data.pace, data.opened_at ? `Last opened ${clock(data.opened_at)}` : ""].filter(Boolean).join(". ");
    this.extra.hidden = !extra;
    setText(this.extra, extra);
    this.closeButton.hidden = data.state === "closed";
    setText(this.openButton, data.state === "open" ? "Open longer…" : "Open…");
    FACTS.forEach(([, value], i) => setText(this.facts[i], value(data)));
    this.draw(data.history ?? NO_SERIES);
    this.tick();
  }

  draw(series) {
    const refused = sum(series.refused) + sum(series.limited);
    const slowest = Math.max(0, ...series.delay_ms);
    const notes = {
      requests: `${count(sum(series.requests))} in the last hour`,
      refused: `${count(sum(series.refused))} by Sluice, ${count(sum(series.limited))} by the origin`,
      delay: slowest > 0 ? `up to ${duration(slowest)}` : "none",
    };
    for (const { part, chart, note, node } of this.plots) {
      setText(note, notes[part]);
      chart.draw(series, `${part}: ${notes[part]}`);
      node.hidden = (part === "refused" && refused === 0) || (part === "delay" && slowest === 0);
    }
  }

  tick() {
    if (this.key === null || !this.data) return;
    const until = this.data.state === "open" && this.data.until ? Date.parse(this.data.until) : 0;
    this.big.hidden = !until;
    if (until) setText(this.big, left(until - serverNow()));
  }
}
