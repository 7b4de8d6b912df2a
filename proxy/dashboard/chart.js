// Draws the last hour: requests as an area, what was refused as bars, the delay as a dashed line.
import { svg } from "/dom.js";

const MINUTES = 60;

// Right-aligned: the newest minute is at the right edge, however few are known.
function points(values, width, height, top) {
  const step = width / (MINUTES - 1);
  const from = MINUTES - values.length;
  return values.map((value, i) => [(from + i) * step, height - (top > 0 ? (value / top) * height : 0)]);
}

const path = (list) => list.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function areaPath(list, height) {
  if (list.length === 0) return "";
  return `${path(list)}L${list.at(-1)[0].toFixed(1)} ${height}L${list[0][0].toFixed(1)} ${height}Z`;
}

function barsPath(values, width, height, top) {
  const bar = (width / MINUTES) * 0.62;
  return points(values, width, height, top)
    .map(([x, y], i) => (values[i] > 0
      ? `M${Math.min(width - bar, Math.max(0, x - bar / 2)).toFixed(1)} ${height}v${Math.min(-1.5, y - height).toFixed(1)}h${bar.toFixed(1)}V${height}Z`
      : ""))
    .join("");
}

export class Chart {
  // `parts`: which of "requests", "refused", "delay" are drawn.
  constructor(width, height, parts, classes = "") {
    this.width = width;
    this.height = height;
    this.base = svg("path", { class: "base", d: `M0 ${height - 0.5}H${width}` });
    this.area = svg("path", { class: "area" });
    this.curve = svg("path", { class: "curve" });
    this.bars = svg("path", { class: "bars" });
    this.delay = svg("path", { class: "delay" });
    this.parts = parts;
    const drawn = [this.base];
    if (parts.includes("requests")) drawn.push(this.area, this.curve);
    if (parts.includes("refused")) drawn.push(this.bars);
    if (parts.includes("delay")) drawn.push(this.delay);
    this.node = svg("svg", {
      class: classes, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    }, ...drawn);
  }

  draw(series, label) {
    const { width, height } = this;
    const refused = series.refused.map((n, i) => n + series.limited[i]);
    const top = Math.max(1, ...(this.parts.includes("requests") ? series.requests : []),
      ...(this.parts.includes("refused") ? refused : []));
    const body = height - 2; // room for the line's own width
    const requests = points(series.requests, width, body, top).map(([x, y]) => [x, y + 1]);
    this.area.setAttribute("d", areaPath(requests, height));
    this.curve.setAttribute("d", path(requests));
    this.bars.setAttribute("d", barsPath(refused, width, height, top));
    const slowest = Math.max(1, ...series.delay_ms);
    const slow = series.delay_ms.some((ms) => ms > 0) ? points(series.delay_ms, width, body, slowest * 1.15) : [];
    this.delay.setAttribute("d", path(slow.map(([x, y]) => [x, y + 1])));
    this.node.setAttribute("aria-label", label);
  }
}

export const sum = (values) => values.reduce((total, value) => total + value, 0);

export const NO_SERIES = { requests: [], refused: [], limited: [], delay_ms: [] };
