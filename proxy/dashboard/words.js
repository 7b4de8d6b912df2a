// Numbers and times as people read them, and the server's clock, which is not the browser's.

let skew = 0; // server minus browser, in ms

export function learnTime(iso) {
  if (iso) skew = Date.parse(iso) - Date.now();
}
export const serverNow = () => Date.now() + skew;

const plain = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
export const count = (n) => (n < 100000 ? plain : short).format(n);

export function money(amount, currency) {
  const digits = Math.abs(amount) < 1 && amount !== 0 ? 4 : 2;
  return `${amount.toFixed(digits)} ${currency}`.trim();
}

const two = (n) => String(n).padStart(2, "0");

// What is left, rounded up, so that it is over when it says 0: "41 s", "4:12", "2 h 05 m", "3 d 4 h".
export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)} s` : left(ms);
}

export function ago(iso) {
  const s = Math.round((serverNow() - Date.parse(iso)) / 1000);
  if (s < 5) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export const clock = (iso) =>
  new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
