// What an operator can order: shut a key, let it go, stop everything, resume.
import { element } from "/dom.js";
import { keyPath, order } from "/api.js";
import { confirm } from "/confirm.js";

const TIMES = [["10m", "10 minutes"], ["1h", "1 hour"], ["6h", "6 hours"], ["24h", "1 day"], ["168h", "1 week"]];

const reasonField = () => ({
  name: "reason", label: "Reason (others will see it)",
  control: element("input", { maxlength: 150, autocomplete: "off", placeholder: "optional" }),
});

export function openKey(key, done) {
  const times = element("select", {}, ...TIMES.map(([value, word]) => element("option", { value }, word)));
  confirm({
    title: `Open ${key}?`,
    text: "Requests to it are refused until the time is over, or until somebody closes it.",
    yes: "Open the breaker",
    danger: true,
    fields: [{ name: "for", label: "For", control: times }, reasonField()],
    act: async (values) => done(await order(keyPath(key, "open"), values)),
  });
}

export function closeKey(key, done) {
  confirm({
    title: `Close ${key}?`,
    text: "Its cooldown and everything held against it are forgotten, and requests go out at once. If the origin named a time, it may answer with a longer one.",
    yes: "Let requests through",
    act: async () => done(await order(keyPath(key, "close"))),
  });
}

export function stopAll(done) {
  confirm({
    title: "Stop everything?",
    text: "Every request is refused and open tunnels are cut, on every host, until somebody resumes.",
    yes: "Stop everything",
    danger: true,
    fields: [reasonField()],
    act: async (values) => done(await order("/api/stop", values)),
  });
}

export function resumeAll(done) {
  confirm({
    title: "Resume?",
    text: "Requests go out again, each within the limits of its host.",
    yes: "Resume",
    act: async () => done(await order("/api/resume")),
  });
}
