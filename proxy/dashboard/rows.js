// The list of keys: any number of them, a screenful of elements. Rows are asked for as they come
// into view and asked for again while they stay there; the window itself scrolls.
import { byId, element, setText } from "/dom.js";
import { Chart, NO_SERIES, sum } from "/chart.js";
import { count, duration, left, serverNow } from "/words.js";

const AROUND = 12; // rows kept ready above and below the screen

export const stateOf = (row) => (row.state === "closed" && row.delay_ms > 0 ? "slowed" : row.state);

// The key stands above it already.
function withoutKey({ key, sentence }) {
  const rest = sentence.startsWith(`${key} `) ? sentence.slice(key.length + 1) : sentence;
  return rest.replace(/^is /, "");
}

class Row {
  constructor() {
    this.state = element("span", { class: "state" });
    this.name = element("b");
    this.about = element("span");
    this.countDown = this.cell("number count-down");
    this.delay = this.cell("number cell-delay");
    this.flight = this.cell("number");
    this.held = this.cell("number");
    this.requests = this.cell("number cell-requests");
    this.refused = this.cell("number");
    this.chart = new Chart(128, 34, ["requests", "refused", "delay"], "spark");
    this.cells = [
      element("div", { class: "cell-state", role: "gridcell" }, this.state),
      element("div", { class: "key", role: "rowheader" }, this.name, this.about),
      this.countDown, this.delay, this.flight, this.held, this.requests, this.refused,
      element("div", { class: "spark-cell", role: "gridcell" }, this.chart.node)];
    this.cells.forEach((cell, i) => cell.setAttribute("aria-colindex", i + 1));
    this.node = element("div", { class: "row", role: "row" }, ...this.cells);
    this.index = -1;
  }

  cell(classes) {
    return element("div", { class: classes, role: "gridcell" });
  }

  place(index, height) {
    if (this.index === index) return;
    this.index = index;
    this.node.id = `row-${index}`;
    this.node.style.setProperty("--at", `${index * height}px`);
    this.node.setAttribute("aria-rowindex", index + 2); // the head of the columns is the first
    this.cells.forEach((cell, i) => { cell.id = `cell-${index}-${i}`; });
  }

  show(data) {
    this.data = data;
    this.node.classList.toggle("loading", !data);
    if (!data) {
      for (const cell of [this.state, this.name, this.about, this.countDown, this.delay, this.flight, this.held, this.requests, this.refused]) setText(cell, "");
      return;
    }
    const state = stateOf(data);
    this.state.dataset.state = state;
    setText(this.state, state);
    setText(this.name, data.key);
    this.name.title = data.key;
    setText(this.about, data.state === "closed" ? data.pace || data.policy : withoutKey(data));
    this.about.title = data.sentence;
    this.number(this.delay, data.delay_ms, duration, "warn");
    this.number(this.flight, data.in_flight, count);
    this.number(this.held, data.held, count, "warn");
    this.number(this.requests, data.requests, count);
    this.number(this.refused, data.counts.refused, count, "bad");
    const series = data.history ?? NO_SERIES;
    this.chart.draw(series, `${count(sum(series.requests))} requests and ${count(sum(series.refused))} refusals in the last hour`);
    this.tick();
  }

  number(cell, value, format, tone) {
    setText(cell, value > 0 ? format(value) : "–");
    cell.classList.toggle("zero", !(value > 0));
    if (tone) cell.classList.toggle(tone, value > 0);
  }

  // True when a cooldown has just ended.
  tick() {
    if (!this.data) return false;
    const until = this.data.state === "open" && this.data.until ? Date.parse(this.data.until) : 0;
    const rest = until - serverNow();
    setText(this.countDown, until ? left(rest) : "");
    return until > 0 && rest <= 0;
  }
}

export class Rows {
  // `load(offset, limit)` gives { matched, keys }; `open(row)` is called for the chosen one.
  constructor(load, open) {
    this.load = load;
    this.open = open;
    this.node = byId("rows");
    this.grid = byId("grid");
    this.data = []; // sparse, by place in the order
    this.shown = new Map(); // place -> Row
    this.spare = [];
    this.matched = 0;
    this.active = 0;
    this.column = -1; // the cell of the active row; -1: the row itself
    this.turn = 0;
    addEventListener("scroll", () => this.schedule(), { passive: true });
    addEventListener("resize", () => this.schedule());
    this.grid.addEventListener("keydown", (event) => this.onKey(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
    setInterval(() => this.tick(), 250);
  }

  get height() {
    return parseFloat(getComputedStyle(this.node).getPropertyValue("--row"));
  }

  // Another question: nothing of the old answer holds.
  reset() {
    this.data = [];
    this.active = 0;
    this.turn += 1;
    const top = this.node.getBoundingClientRect().top;
    if (top < 0) scrollBy(0, top - 160);
    return this.refresh();
  }

  range() {
    const height = this.height;
    const top = this.node.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - AROUND);
    const last = Math.ceil((innerHeight - top) / height) + AROUND;
    return { height, first, last: Math.max(first, last) };
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
      const { first, last } = this.range();
      for (let i = first; i < Math.min(last, this.matched); i += 1) {
        if (!this.data[i]) return this.refresh().catch(() => {}); // the regular one will say why
      }
    });
  }

  // Asks for what is in view. One question at a time: a newer one waits for its turn.
  async refresh() {
    if (this.asking) {
      this.again = true;
      return this.asking;
    }
    this.asking = this.ask();
    try {
      return await this.asking;
    } finally {
      this.asking = null;
      if (this.again) {
        this.again = false;
        this.refresh().catch(() => {});
      }
    }
  }

  async ask() {
    const turn = this.turn;
    const { first, last } = this.range();
    const limit = Math.min(300, Math.max(30, last - first));
    const answer = await this.load(first, limit);
    if (turn !== this.turn) return answer; // of a question nobody asks any more
    this.matched = answer.matched;
    this.data.length = Math.min(this.data.length, this.matched);
    answer.keys.forEach((row, i) => { this.data[first + i] = row; });
    this.active = Math.min(this.active, Math.max(0, this.matched - 1));
    this.draw();
    return answer;
  }

  draw() {
    const { height, first, last } = this.range();
    const end = Math.min(last, this.matched);
    this.node.style.height = `${this.matched * height}px`;
    this.grid.setAttribute("aria-rowcount", this.matched + 1);
    for (const [index, row] of this.shown) {
      if (index >= first && index < end && row.height === height) continue;
      row.node.remove();
      this.shown.delete(index);
      row.index = -1;
      this.spare.push(row);
    }
    let next = this.node.firstElementChild; // elements stand in the order of their rows
    for (let index = first; index < end; index += 1) {
      let row = this.shown.get(index);
      if (row) {
        next = row.node.nextElementSibling;
      } else {
        row = this.spare.pop() ?? new Row();
        row.height = height;
        row.place(index, height);
        this.shown.set(index, row);
        this.node.insertBefore(row.node, next);
      }
      if (row.data !== this.data[index] || !row.data) row.show(this.data[index]);
      row.node.classList.toggle("active", index === this.active);
      row.cells.forEach((cell, i) => cell.classList.toggle("active-cell", index === this.active && i === this.column));
    }
    const active = this.column < 0 ? `row-${this.active}` : `cell-${this.active}-${this.column}`;
    if (this.shown.has(this.active)) this.grid.setAttribute("aria-activedescendant", active);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  // To the next cell that is shown; on a narrow screen some are not.
  moveInRow(step) {
    const cells = this.shown.get(this.active)?.cells ?? [];
    let column = this.column + step;
    while (column >= 0 && column < cells.length && !cells[column].offsetParent) column += step;
    if (column < cells.length) this.column = Math.max(-1, column);
    this.draw();
  }

  tick() {
    let ended = false;
    for (const row of this.shown.values()) ended = row.tick() || ended;
    if (ended && !this.asking && Date.now() - (this.lastEnd ?? 0) > 1000) {
      this.lastEnd = Date.now();
      this.refresh().catch(() => {});
    }
  }

  onKey(event) {
    const page = Math.max(1, Math.floor((innerHeight * 0.7) / this.height));
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.data[this.active]) {
      event.preventDefault();
      this.open(this.data[this.active]);
    } else if (event.key in moves && this.matched > 0) {
      event.preventDefault();
      this.active = Math.max(0, Math.min(this.matched - 1, this.active + moves[event.key]));
      this.reveal();
      this.draw();
    } else if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
      event.preventDefault();
      this.moveInRow(event.key === "ArrowRight" ? 1 : -1);
    }
  }

  reveal() {
    const { height } = this;
    const top = this.node.getBoundingClientRect().top + this.active * height;
    const head = 140;
    if (top < head) scrollBy(0, top - head);
    else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight + 12);
  }

  onClick(event) {
    const node = event.target.closest(".row");
    if (!node) return;
    const index = Number(node.id.replace("row-", ""));
    this.active = index;
    this.draw();
    if (this.data[index]) this.open(this.data[index]);
  }
}
