// Puts the page together: who is signed in, what is refreshed when, and what happens when Sluice
// cannot be reached.
import { byId, setText } from "/dom.js";
import { follow, forgetToken, hasToken, read, setToken, takeTokenFromAddress } from "/api.js";
import { stopAll } from "/acts.js";
import { Detail } from "/detail.js";
import { Events } from "/events.js";
import { Keys } from "/keys.js";
import { Overview } from "/overview.js";
import { startTheme } from "/theme.js";
import { learnTime } from "/words.js";

const EVERY = 2000; // ms between refreshes
const PATIENCE = [1000, 2000, 4000, 8000]; // before the stream is tried again

let view = null; // what is shown to somebody who is signed in
let lost = false;
let following = null; // ends the stream of events; null: there is none

function showLink(state, text) {
  byId("link").dataset.state = state;
  setText(byId("link-text"), text);
  document.body.classList.toggle("stale", state === "lost");
}

function signIn(sentence = "") {
  byId("app").hidden = true;
  byId("sign-in").hidden = false;
  byId("sign-out").hidden = true;
  byId("stop").hidden = true;
  setText(byId("sign-in-error"), sentence);
  showLink("waiting", "Signed out");
  byId("token").focus();
}

function failed(problem) {
  if (problem.status === 401) {
    forgetToken();
    signIn("That is not the token, or it has changed.");
  } else if (problem.status === 0) {
    lost = true;
    showLink("lost", "Connection lost, trying again");
  } else {
    showLink("lost", problem.message);
  }
}

async function refresh() {
  if (!hasToken() || document.hidden) return;
  try {
    const [status, budget, anomalies] = await Promise.all([
      read("/api/status"), read("/api/budget"), read("/api/anomalies"), view.keys.refresh(), view.detail.refresh()]);
    learnTime(status.now);
    view.overview.show(status);
    view.overview.showBudget(budget);
    view.overview.showAnomalies(anomalies);
    view.keys.showCounts(status.keys);
    lost = false;
    showLink("live", "Live");
  } catch (problem) {
    failed(problem);
  }
}

// Events as they happen; each one is a reason to look at the keys again.
async function followEvents(signal) {
  let tries = 0;
  let soon = 0;
  while (!signal.aborted) {
    try {
      view.events.catchUp(await read("/api/events?limit=100", signal));
      await follow(view.events.last, signal, () => { tries = 0; }, (event) => {
        if (!view.events.add(event, true)) return;
        clearTimeout(soon);
        soon = setTimeout(refresh, 150);
      });
    } catch (problem) {
      if (signal.aborted || problem.status === 401) return;
      if (!lost) refresh();
    }
    const wait = PATIENCE[Math.min(tries, PATIENCE.length - 1)];
    tries += 1;
    await new Promise((resume) => { setTimeout(resume, wait); });
  }
}

// At most one stream, and none while nobody looks: a browser has about six connections to one
// address, for all of its tabs together.
function followWhileSeen() {
  following?.abort();
  following = null;
  if (document.hidden || !hasToken()) return;
  following = new AbortController();
  followEvents(following.signal);
}

function look() {
  refresh();
  followWhileSeen();
}

function start() {
  byId("sign-in").hidden = true;
  byId("app").hidden = false;
  byId("sign-out").hidden = false;
  if (!view) {
    const changed = (sentence) => {
      setText(byId("announce"), sentence);
      return refresh();
    };
    const detail = new Detail(changed);
    view = { detail, keys: new Keys((row) => detail.open(row)), overview: new Overview(changed), events: new Events() };
    byId("stop").addEventListener("click", () => stopAll(changed));
    setInterval(refresh, EVERY);
    document.addEventListener("visibilitychange", look);
  }
  look();
}

function showTab(name) {
  document.body.dataset.view = name;
  for (const button of document.querySelectorAll("[data-tab]")) {
    button.setAttribute("aria-pressed", button.dataset.tab === name);
  }
  dispatchEvent(new Event("resize"));
}

startTheme();
takeTokenFromAddress();
for (const button of document.querySelectorAll("[data-tab]")) {
  button.addEventListener("click", () => showTab(button.dataset.tab));
}
byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  setToken(byId("token").value.trim());
  byId("token").value = "";
  try {
    await read("/api/status");
    start();
  } catch (problem) {
    if (problem.status === 401) failed(problem);
    else signIn(problem.message);
  }
});
byId("sign-out").addEventListener("click", () => {
  forgetToken();
  location.reload();
});
if (hasToken()) start();
else signIn();
