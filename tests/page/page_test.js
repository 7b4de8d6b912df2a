// The dashboard in a real browser: what a person sees, does and must be kept from.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Admin, launch, open, shoot } from "./browser.js";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

// A page over an admin side of its own, which is told `orders` before; its console must stay empty.
function pageTest(name, options, orders, body) {
  test(name, { timeout: 60000 }, async () => {
    const admin = await Admin.start(options.minute);
    try {
      for (const order of orders) await admin.tell(order);
      const page = await open(browser, admin, options.context);
      try {
        await body(page, admin);
        assert.deepEqual(page.problems, []);
      } finally {
        await page.context().close();
      }
    } finally {
      await admin.stop();
    }
  });
}

const row = (page, key) => page.locator("#rows .row", { has: page.getByText(key, { exact: true }) });
const shown = (page) => page.locator("#rows .row:not(.loading) .key b").allTextContents();

pageTest("with nothing to show it says so", {}, [], async (page) => {
  await page.getByText("No traffic yet").waitFor();
  await page.getByText("No budget is set.").waitFor();
  await page.getByText("Nothing has happened yet.").waitFor();
  assert.match(await page.locator("#anomalies").textContent(), /^None\./);
  assert.equal(await page.locator("#jobs-card").isVisible(), false);
  assert.ok(!page.url().includes("token"), "the token does not stay in the address");
  await shoot(page, "empty");
});

pageTest("keys are shown with state, countdown and cause, and the countdown runs", {},
  [{ do: "put", key: "calm.test" }, { do: "trip", key: "busy.test", seconds: 90 }], async (page) => {
    const busy = row(page, "busy.test");
    assert.equal(await busy.locator(".state").textContent(), "open");
    assert.match(await busy.locator(".key span").textContent(), /^cooling down after 429 Too Many Requests/);
    const countDown = busy.locator(".count-down");
    const first = await countDown.textContent();
    assert.match(first, /^1:\d\d$/);
    await page.waitForFunction(([node, text]) => node.textContent !== text, [await countDown.elementHandle(), first]);
    assert.equal(await row(page, "calm.test").locator(".state").textContent(), "closed");
    assert.deepEqual((await shown(page))[0], "busy.test", "what needs a person comes first");
  });

pageTest("it updates live: a trip and its event appear by themselves", {}, [{ do: "put", key: "a.test" }], async (page, admin) => {
  await page.waitForFunction(() => document.querySelector(".state")?.textContent === "closed");
  await admin.tell({ do: "trip", key: "a.test", seconds: 60 });
  await page.locator("#events").getByText("a.test is cooling down after 429").waitFor();
  await row(page, "a.test").locator(".state[data-state=open]").waitFor();
  assert.match(await page.locator("#announce").textContent(), /a\.test is cooling down/, "a screen reader is told");
});

pageTest("a cooldown that ends is looked at again", {}, [{ do: "trip", key: "a.test", seconds: 2 }], async (page, admin) => {
  await page.waitForTimeout(500);
  await admin.tell({ do: "put", key: "a.test" });
  await row(page, "a.test").locator(".state[data-state=closed]").waitFor();
});

pageTest("stop and resume, each with a question before", {}, [{ do: "put", key: "a.test" }], async (page, admin) => {
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(await admin.orders(), []);
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByLabel("Reason").fill("the bill");
  await shoot(page, "stop");
  await page.locator("#confirm-yes").click();
  await page.locator("#banners").getByText("Everything is stopped", { exact: true }).waitFor();
  assert.match(await page.locator(".banner.bad").textContent(), /the bill/);
  assert.equal(await page.locator("#stop").isVisible(), false);
  await shoot(page, "stopped");
  await page.getByRole("button", { name: "Resume…" }).click();
  await page.locator("#confirm-yes").click();
  await page.locator("#stop").waitFor();
  assert.deepEqual(await admin.orders(), ["stop the bill", "resume"]);
});

pageTest("open and close a key, by keyboard alone", {}, [{ do: "put", key: "a.test" }, { do: "put", key: "b.test:8443" }], async (page, admin) => {
  await row(page, "b.test:8443").waitFor();
  await page.locator("#grid").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("heading", { name: "b.test:8443" }).waitFor();
  await page.getByRole("button", { name: "Open…" }).press("Enter");
  await page.getByLabel("For").selectOption("1 hour");
  await page.getByLabel("Reason").fill("maintenance");
  await page.keyboard.press("Enter");
  await page.locator("#detail .state[data-state=open]").waitFor();
  await shoot(page, "sheet");
  await page.getByRole("button", { name: "Close…" }).press("Enter");
  await page.locator("#confirm-yes").press("Enter");
  await page.locator("#detail .state[data-state=closed]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#detail").waitFor({ state: "hidden" });
  assert.deepEqual(await admin.orders(), ["open b.test:8443 1 h maintenance", "close b.test:8443"]);
});

pageTest("an order that fails says why and stays", {}, [{ do: "trip", key: "a.test", seconds: 60 }], async (page, admin) => {
  await row(page, "a.test").click();
  await page.getByRole("button", { name: "Close…" }).click();
  await admin.tell({ do: "fail", why: "the disk is full" });
  await page.locator("#confirm-yes").click();
  await page.locator("#confirm-error", { hasText: "the disk is full" }).waitFor();
  page.problems = page.problems.filter((text) => !text.includes("503")); // the browser's own word on it
});

pageTest("10,000 keys: few elements, quick search and sort, every key can be reached", {},
  [{ do: "demo", keys: 10000 }], async (page) => {
    await row(page, "api.github.com").or(page.locator("#rows .row").first()).first().waitFor();
    assert.ok(await page.locator("#rows .row").count() < 80);
    assert.equal(await page.locator("#keys-count").textContent(), "10000 keys");

    await page.getByLabel("Search keys and policies").fill("host-9999");
    await page.waitForFunction(() => document.querySelector("#keys-count").textContent === "1 of 10000 keys");
    assert.deepEqual(await shown(page), ["host-9999.example.net"]);
    await page.getByLabel("Search keys and policies").fill("no such key");
    await page.getByText("No key matches “no such key”").waitFor();
    await page.getByRole("button", { name: "Show all keys" }).click();

    await page.locator("#columns").getByRole("button", { name: "Key" }).click();
    await page.waitForFunction(() => document.querySelector("#row-0 b")?.textContent === "api.anthropic.com");
    await page.locator("#columns").getByRole("button", { name: "Key" }).click();
    await page.waitForFunction(() => document.querySelector("#row-0 b")?.textContent === "www.googleapis.com");

    // Work while scrolling is bounded by the screen, whatever there is below it: elements made and
    // kept, and rows asked for.
    const asked = [];
    page.on("request", (request) => { if (request.url().includes("/api/keys?")) asked.push(new URL(request.url())); });
    const work = await page.evaluate(async () => {
      const made = new Set(document.querySelectorAll("#rows .row"));
      const first = made.size;
      let most = 0;
      for (let i = 0; i < 60; i += 1) {
        scrollBy(0, 4000);
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        const rows = document.querySelectorAll("#rows .row");
        most = Math.max(most, rows.length);
        rows.forEach((row) => made.add(row));
      }
      return { first, most, made: made.size };
    });
    assert.ok(work.most < 80, `${work.most} rows at once`);
    assert.ok(work.made < 2 * 80, `${work.made} rows were made for 60 screens: they are used again`);
    assert.ok(asked.length > 0 && asked.length <= 70, `${asked.length} questions for 60 screens`);
    for (const url of asked) assert.ok(Number(url.searchParams.get("limit")) <= 100, url.search);
    const places = await page.locator("#rows .row").evaluateAll((rows) => rows.map((one) => Number(one.getAttribute("aria-rowindex"))));
    assert.deepEqual(places, [...places].sort((a, b) => a - b), "read in the order in which they are seen");
    await page.locator("#grid").focus();
    await page.keyboard.press("End");
    await page.waitForFunction(() => document.querySelector("#row-9999 b")?.textContent === "api.anthropic.com");
    assert.ok(await page.locator("#rows .row").count() < 80);
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("heading", { name: "api.anthropic.com" }).waitFor();
    await page.keyboard.press("Escape");
    await shoot(page, "many");
  });

pageTest("the picture in the README", { minute: 40, context: { viewport: { width: 1440, height: 1320 }, colorScheme: "light" } },
  [{ do: "demo", keys: 20 }, { do: "sections", calm: true }], async (page) => {
    await page.waitForFunction(() => document.querySelector(".spark .curve")?.getAttribute("d").length > 400);
    await page.waitForTimeout(2200); // an hour of it
    for (const word of ["oauth.reddit.com", "half-open", "6.42 USD", "thrash", "is cooling down after 429"])
      await page.getByText(word).first().waitFor();
    await shoot(page, "dashboard");
  });

for (const theme of ["light", "dark"]) {
  pageTest(`the whole page, ${theme}`, { minute: 40, context: { colorScheme: theme } },
    [{ do: "demo", keys: 20 }, { do: "sections" }], async (page) => {
      await page.waitForFunction(() => document.querySelector(".spark .curve")?.getAttribute("d").length > 400);
      const drawn = await page.evaluate(() => ["curve", "bars", "delay"].filter((part) =>
        [...document.querySelectorAll(`.spark .${part}`)].some((line) => (line.getAttribute("d") ?? "").length > 10)));
      assert.deepEqual(drawn, ["curve", "bars", "delay"], "requests, refusals and delay of the last hour");
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const before = await paper();
      await page.waitForTimeout(400);
      await shoot(page, theme);
      const other = theme === "light" ? "dark" : "light";
      for (let i = 0; i < 3 && !(await page.getByLabel(`Theme: ${other}`).isVisible()); i += 1) await page.locator("#theme").click();
      assert.notEqual(await paper(), before);
      await page.reload();
      await page.locator("#link[data-state=live]").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), other, "it is remembered");
      assert.match(await page.locator("#budget").textContent(), /6\.42 USD of 10\.00 USD/);
      assert.match(await page.locator("#anomalies").textContent(), /41 times in 5 minutes/);
      assert.match(await page.locator("#jobs").textContent(), /backfill refused/);
      assert.match(await page.locator("#banners").textContent(), /policies\/reddit\.toml:3:8/);
    });
}

pageTest("on a phone nothing is cut off, and every section can be reached", { minute: 40, context: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true } },
  [{ do: "demo", keys: 200 }, { do: "sections" }], async (page) => {
    await page.locator("#rows .row .key b").first().waitFor();
    await page.waitForTimeout(1500);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shoot(page, "phone");
    await page.getByRole("button", { name: "Budget & jobs" }).tap();
    await page.getByText("6.42 USD of 10.00 USD").waitFor();
    await shoot(page, "phone-budget");
    await page.getByRole("button", { name: "Events" }).tap();
    await page.getByText("half of the daily budget is spent").waitFor();
    assert.equal(await page.locator("#rows").isVisible(), false);
    await page.getByRole("button", { name: "Keys", exact: true }).tap();
    await page.locator("#rows .row").first().tap();
    await page.getByRole("dialog").waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shoot(page, "phone-sheet");
  });

const ATTACKS = [
  "<img src=x onerror=alert(1)>.test",
  "\"><script>document.title='owned'</script>",
  "javascript:alert(1)//'\"`${alert(1)}{{7*7}}",
  "</script><svg onload=alert(1)>",
];
for (const text of ATTACKS) {
  pageTest(`other people's words stay words: ${text}`, {}, [{ do: "poison", text }], async (page, admin) => {
    await row(page, text).waitFor();
    await page.locator("#events").getByText(text, { exact: true }).waitFor();
    await page.locator("#jobs").getByText(text).first().waitFor();
    await page.locator("#banners").getByText(text).first().waitFor();
    await row(page, text).click();
    await page.getByRole("dialog").getByRole("heading", { name: text, exact: true }).waitFor();
    await page.getByRole("button", { name: "Close…" }).click();
    await page.getByRole("heading", { name: `Close ${text}?` }).waitFor();
    await page.locator("#confirm-yes").click();
    await page.locator("#confirm").waitFor({ state: "hidden" });
    assert.deepEqual(await admin.orders(), [`close ${text}`], "it is one key, whatever is in it");
    assert.equal(await page.title(), "Sluice");
    assert.equal(await page.locator("main script, main iframe, main img, dialog img").count(), 0);
  });
}

pageTest("the browser itself would refuse markup and foreign scripts", {}, [], async (page) => {
  const refused = await page.evaluate(() => [
    () => { document.body.innerHTML = "<b>x</b>"; },
    () => { document.body.setAttribute("onclick", "window.owned = true"); },
    () => { document.createElement("script").text = "window.owned = true"; },
  ].map((act) => {
    try {
      act();
      return "taken";
    } catch (problem) {
      return problem.name;
    }
  }));
  assert.ok(!refused.includes("taken"), refused.join());
  page.problems = []; // the browser's own words about each
});

pageTest("a tab that nobody looks at holds no connection, and misses nothing", {}, [{ do: "put", key: "a.test" }], async (page, admin) => {
  const look = (hidden) => page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const isStream = (request) => request.url().includes("/api/events?after=");
  await admin.tell({ do: "event", key: "a.test", text: "before" });
  await page.locator("#events").getByText("before").waitFor();
  const ended = page.waitForEvent("requestfailed", isStream);
  await look(true);
  await ended;
  await admin.tell({ do: "event", key: "a.test", text: "meanwhile" });
  const again = page.waitForEvent("request", isStream);
  await look(false);
  await again;
  await page.locator("#events").getByText("meanwhile").waitFor();
  assert.equal(await page.locator("#events").getByText("before").count(), 1);
});

pageTest("when Sluice goes away it says so, and recovers", {}, [{ do: "put", key: "a.test" }], async (page) => {
  await row(page, "a.test").waitFor();
  await page.context().setOffline(true);
  await page.locator("#link[data-state=lost]").waitFor();
  assert.match(await page.locator("#link").textContent(), /Connection lost/);
  assert.equal(await row(page, "a.test").count(), 1, "what was known stays on the page");
  await shoot(page, "lost");
  await page.context().setOffline(false);
  await page.locator("#link[data-state=live]").waitFor();
  page.problems = page.problems.filter((text) => !text.includes("ERR_INTERNET_DISCONNECTED"));
});

test("signing in: a wrong token is refused, the right one is kept for this tab only", { timeout: 60000 }, async () => {
  const admin = await Admin.start();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(admin.url);
  await page.getByLabel("Token").fill("nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("That is not the token").waitFor();
  assert.equal(await page.locator("#app").isVisible(), false);
  await shoot(page, "sign-in");
  await page.getByLabel("Token").fill(admin.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("No traffic yet").waitFor();
  await page.reload();
  await page.getByText("No traffic yet").waitFor();
  assert.deepEqual(await context.cookies(), []);
  const other = await context.newPage();
  await other.goto(admin.url);
  await other.getByRole("button", { name: "Sign in" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await context.close();
  await admin.stop();
});

pageTest("the keys are a grid: by roles, by keyboard, by cell", {}, [{ do: "demo", keys: 40 }], async (page) => {
  await page.locator("#rows .row:not(.loading)").first().waitFor();
  const grid = page.getByRole("grid", { name: "Keys" });
  assert.equal(await grid.getAttribute("aria-rowcount"), "41", "with the head");
  // As the browser tells it to a screen reader: the head first, then the rows.
  const cdp = await page.context().newCDPSession(page);
  const { nodes } = await cdp.send("Accessibility.getFullAXTree");
  const byNumber = new Map(nodes.map((node) => [node.nodeId, node]));
  const below = (node) => (node.childIds ?? []).map((id) => byNumber.get(id)).flatMap((child) => (child.ignored ? below(child) : [child]));
  const rolesBelow = (node) => below(node).map((child) => child.role.value);
  const told = nodes.find((node) => node.role?.value === "grid");
  assert.deepEqual(rolesBelow(told), ["row", "rowgroup"]);
  assert.deepEqual(rolesBelow(below(told)[0]), Array(9).fill("columnheader"));
  const [first] = below(below(told)[1]);
  assert.deepEqual(rolesBelow(first), ["gridcell", "rowheader", ...Array(7).fill("gridcell")]);
  assert.equal(await page.getByRole("columnheader").count(), 9);
  assert.equal(await page.getByRole("columnheader", { name: "State" }).getAttribute("aria-sort"), "ascending");
  await page.locator("#columns").getByRole("button", { name: "Requests" }).click();
  assert.equal(await page.getByRole("columnheader", { name: "Requests" }).getAttribute("aria-sort"), "descending");
  assert.equal(await page.getByRole("columnheader", { name: "State" }).getAttribute("aria-sort"), "none");

  const active = () => page.evaluate(() => {
    const id = document.querySelector("#grid").getAttribute("aria-activedescendant");
    const node = document.getElementById(id);
    return { id, role: node?.getAttribute("role"), inside: document.querySelector("#rows").contains(node) };
  });
  await grid.focus();
  assert.deepEqual(await active(), { id: "row-0", role: "row", inside: true });
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(await active(), { id: "cell-1-1", role: "rowheader", inside: true });
  for (let i = 0; i < 20; i += 1) await page.keyboard.press("ArrowRight");
  assert.deepEqual(await active(), { id: "cell-1-8", role: "gridcell", inside: true }, "the last one is the end");
  for (let i = 0; i < 20; i += 1) await page.keyboard.press("ArrowLeft");
  assert.deepEqual(await active(), { id: "row-1", role: "row", inside: true });
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.querySelector("#grid").getAttribute("aria-activedescendant") === "row-39");
  await page.keyboard.press("Home");
  assert.equal((await active()).id, "row-0");
});
