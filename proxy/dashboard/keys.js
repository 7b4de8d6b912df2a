// The section of keys: search, filters, order, and what to say when there is nothing to show.
import { byId, element, setText } from "/dom.js";
import { read } from "/api.js";
import { Rows } from "/rows.js";
import { count, learnTime } from "/words.js";

const FILTERS = [["all", "All"], ["open", "Open"], ["half-open", "Half-open"], ["slowed", "Slowed"], ["waiting", "Waiting"]];
const COLUMNS = [
  ["attention", "State", "", "asc"], ["key", "Key", "", "asc"], ["until", "Time left", "number", "asc"],
  ["delay", "Delay", "number", "desc"], ["in_flight", "In flight", "number", "desc"],
  ["held", "Held", "number", "desc"], ["requests", "Requests", "number", "desc"],
  ["refused", "Refused", "number", "desc"], [null, "Last hour", "", ""],
];

export class Keys {
  constructor(openDetail) {
    this.query = { q: "", state: "all", sort: "attention", order: "asc" };
    this.rows = new Rows((offset, limit) => this.load(offset, limit), openDetail);
    this.makeFilters();
    this.makeColumns();
    const search = byId("search");
    let timer = 0;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.ask({ q: search.value.trim() }), 120);
    });
    addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea, dialog[open]");
      if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      search.focus();
    });
  }

  makeFilters() {
    this.filters = new Map(FILTERS.map(([state, word]) => {
      const number = element("b");
      const button = element("button", { type: "button", "aria-pressed": String(state === "all"), on: { click: () => this.ask({ state }) } }, word, number);
      return [state, { button, number }];
    }));
    byId("filters").append(...[...this.filters.values()].map(({ button }) => button));
  }

  makeColumns() {
    this.heads = COLUMNS.map(([sort, word, classes, order]) => {
      if (!sort) return element("div", { role: "columnheader" }, word);
      const button = element("button", { type: "button", "data-sort": sort, title: `Sort by ${word.toLowerCase()}`, on: { click: () => this.sort(sort, order) } }, word);
      return element("div", { class: classes, role: "columnheader" }, button);
    });
    byId("columns").append(...this.heads);
    const choice = byId("sort-by");
    for (const [sort, word] of COLUMNS) if (sort) choice.append(element("option", { value: sort }, word));
    choice.addEventListener("change", () => {
      const [sort, , , order] = COLUMNS.find(([name]) => name === choice.value);
      this.ask({ sort, order });
    });
    this.markColumns();
  }

  sort(sort, order) {
    const { query } = this;
    const turned = query.order === "asc" ? "desc" : "asc";
    this.ask({ sort, order: query.sort === sort ? turned : order });
  }

  markColumns() {
    for (const head of this.heads) {
      const button = head.firstElementChild;
      if (!button) continue; // no order by that one
      const { order } = this.query;
      const mine = button.dataset.sort === this.query.sort;
      head.setAttribute("aria-sort", !mine ? "none" : order === "asc" ? "ascending" : "descending");
      if (mine) button.dataset.order = order;
      else delete button.dataset.order;
    }
    byId("sort-by").value = this.query.sort;
    for (const [state, { button }] of this.filters) button.setAttribute("aria-pressed", state === this.query.state);
  }

  ask(change) {
    Object.assign(this.query, change);
    this.markColumns();
    this.rows.reset().catch(() => {}); // the next regular refresh says what is wrong
  }

  async load(offset, limit) {
    const answer = await read(`/api/keys?${new URLSearchParams({ ...this.query, offset, limit, history: 1 })}`);
    learnTime(answer.now);
    this.describe(answer);
    return answer;
  }

  refresh() {
    return this.rows.refresh();
  }

  // How many of each kind there are.
  showCounts(counts) {
    for (const [state, { number }] of this.filters) setText(number, counts[state] > 0 ? count(counts[state]) : "");
  }

  describe({ matched, total }) {
    setText(byId("keys-count"), matched === total ? `${total} keys` : `${matched} of ${total} keys`);
    const empty = byId("keys-empty");
    const kind = matched > 0 ? "" : total > 0 ? `none ${this.query.q}` : "first";
    byId("grid").hidden = matched === 0;
    empty.hidden = matched > 0;
    if (empty.dataset.kind === kind) return;
    empty.dataset.kind = kind;
    if (kind === "first") {
      empty.replaceChildren(
        element("strong", {}, "No traffic yet"),
        element("p", {}, "Every host that a client calls through Sluice appears here, with its state and its limits."),
        element("code", {}, "eval \"$(sluice env)\""));
    } else if (kind) {
      empty.replaceChildren(
        element("strong", {}, this.query.q ? `No key matches “${this.query.q}”` : "No key is in this state"),
        element("button", { type: "button", on: { click: () => this.clear() } }, "Show all keys"));
    }
  }

  clear() {
    byId("search").value = "";
    this.ask({ q: "", state: "all" });
    byId("search").focus();
  }
}
