// What is true of everything: figures, the hour's chart, warnings, budget, anomalies, jobs.
import { byId, element, setText } from "/dom.js";
import { resumeAll } from "/acts.js";
import { Chart, sum } from "/chart.js";
import { ago, clock, count, left, money, serverNow } from "/words.js";

const FIGURES = [
  ["Requests in the last hour", (s) => sum(s.history.requests), () => ""],
  ["Refused by Sluice", (s) => sum(s.history.refused), () => ""],
  ["Limited by origins", (s) => sum(s.history.limited), (n) => (n > 0 ? "warn" : "")],
  ["Keys open", (s) => s.keys.open, (n) => (n > 0 ? "bad" : "")],
  ["Held now", (s) => s.held, (n) => (n > 0 ? "warn" : "")],
  ["In flight", (s) => s.in_flight, () => ""],
];

export class Overview {
  constructor(changed) {
    this.changed = changed;
    this.figures = FIGURES.map(([word]) => {
      const value = element("dd", {}, "–");
      const node = element("div", { class: "figure" }, element("dt", {}, word), value);
      byId("figures").append(node);
      return { node, value };
    });
    this.chart = new Chart(600, 100, ["requests", "refused"]);
    byId("chart").append(this.chart.node);
    byId("chart").after(element("div", { class: "axis", "aria-hidden": "true" }, element("span", {}, "60 min ago"), element("span", {}, "now")));
    for (const [word, tone] of [["requests", "var(--water)"], ["refused or limited", "var(--bad)"]]) {
      const item = element("span", {}, word);
      item.style.setProperty("--tone", tone);
      byId("chart-legend").append(item);
    }
  }

  show(status) {
    FIGURES.forEach(([, value, tone], i) => {
      const n = value(status);
      setText(this.figures[i].value, count(n));
      this.figures[i].node.dataset.tone = tone(n);
    });
    this.chart.draw(status.history, `${count(sum(status.history.requests))} requests in the last hour, ${count(sum(status.history.refused))} refused`);
    this.showBanners(status);
    this.showJobs(status.jobs);
    byId("stop").hidden = status.stop.on;
    setText(byId("about"), `${status.version}, up ${left(serverNow() - Date.parse(status.started))}`);
  }

  // Rebuilt only when it says something else, so that a button keeps its focus.
  showBanners(status) {
    const said = JSON.stringify([status.stop, status.store, status.policy_problems, status.ready]);
    if (this.said === said) return;
    this.said = said;
    const banners = [];
    if (status.stop.on) {
      const why = [status.stop.reason, status.stop.since ? `since ${clock(status.stop.since)}` : ""].filter(Boolean).join(", ");
      banners.push(this.banner("bad", "Everything is stopped", why,
        element("button", { type: "button", id: "resume", on: { click: () => resumeAll(this.changed) } }, "Resume…")));
    }
    if (!status.ready) banners.push(this.banner("bad", "Not ready", status.not_ready_because));
    if (!status.store.ok) banners.push(this.banner("bad", "The store is in trouble", status.store.sentence));
    for (const problem of status.policy_problems.slice(0, 5)) {
      banners.push(this.banner("warn", `A policy was refused: ${problem.place}`, `${problem.message.replace(/[^.?!]$/, "$&.")} The last good version stays in force.`));
    }
    if (status.policy_problems.length > 5) banners.push(this.banner("warn", `And ${status.policy_problems.length - 5} more`, "sluice check lists them all."));
    byId("banners").replaceChildren(...banners);
  }

  banner(tone, title, text, button) {
    return element("div", { class: `banner ${tone}` }, element("div", {}, element("strong", {}, title), element("p", {}, text)), button);
  }

  showBudget({ currency, periods, lines }) {
    if (periods.length === 0) {
      byId("budget").replaceChildren(element("p", { class: "none" }, "No budget is set."));
      return;
    }
    byId("budget").replaceChildren(...periods.map((period) => this.period(period, currency)),
      element("ul", { class: "lines", hidden: lines.length === 0 },
        ...lines.slice(0, 6).map((line) => element("li", {}, element("span", {}, `${line.name} (${line.kind})`), element("span", {}, money(line.spent, currency))))));
  }

  period({ name, limit, spent, reserved, alert_at: alertAt, stop_at: stopAt, resets }, currency) {
    const share = (amount) => (limit > 0 ? Math.min(1, amount / limit) : 0);
    const used = share(spent + reserved);  // what is reserved counts
    const tone = used >= stopAt ? "bad" : used >= alertAt ? "warn" : "good";
    const meter = element("div", {
      class: "meter", role: "meter", "data-tone": tone, "aria-label": `${name} budget`, "aria-valuemin": 0, "aria-valuemax": limit,
      "aria-valuenow": spent, "aria-valuetext": `${money(spent, currency)} of ${money(limit, currency)}`,
    });
    const part = (tag, to, classes = "") => {
      const node = element(tag, { class: classes });
      node.style.setProperty("--to", `${(to * 100).toFixed(2)}%`);
      return node;
    };
    meter.append(part("i", used, "reserved"), part("i", share(spent)), part("b", stopAt));
    const foot = [`stops at ${Math.round(stopAt * 100)} %`, resets ? `starts anew ${clock(resets)}` : ""].filter(Boolean).join(", ");
    return element("div", { class: "period" },
      element("div", { class: "period-head" }, element("b", {}, name), element("span", {}, `${money(spent, currency)} of ${money(limit, currency)}`)),
      meter, element("p", { class: "period-foot" }, foot));
  }

  showAnomalies({ anomalies }) {
    if (anomalies.length === 0) {
      byId("anomalies").replaceChildren(element("p", { class: "none" }, "None. Bursts, loops on one URL, error spikes and unusual hours would show here."));
      return;
    }
    byId("anomalies").replaceChildren(element("ul", { class: "list" }, ...anomalies.slice(0, 20).map((one) =>
      element("li", { class: one.ended ? "over" : "" },
        element("p", {}, element("span", { class: `tag ${one.ended ? "" : "warn"}` }, one.kind), " ", one.key),
        element("p", {}, one.sentence),
        element("p", { class: "meta" }, one.ended ? `ended ${ago(one.ended)}` : `since ${ago(one.since)}, action: ${one.action}`)))));
  }

  showJobs(jobs) {
    byId("jobs-card").hidden = jobs.length === 0;
    byId("jobs").replaceChildren(element("ul", { class: "list" }, ...jobs.slice(0, 50).map((job) =>
      element("li", {},
        element("p", {}, job.name, " ", job.failed ? element("span", { class: "tag bad" }, "refused") : null),
        element("p", { class: "meta" }, `${count(job.requests)}${job.max_requests ? ` of ${count(job.max_requests)}` : ""} requests, ${count(job.in_flight)} in flight${job.held ? `, ${count(job.held)} held` : ""}${job.refused ? `, ${count(job.refused)} refused` : ""}${job.failures_in_a_row ? `, ${job.failures_in_a_row} failures in a row` : ""}`)))));
  }
}
