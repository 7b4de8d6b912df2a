// The dashboard of the built proxy, over real traffic: nothing between the page and the store is made up.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, shoot } from "./browser.js";
import { Daemon, Origin } from "./daemon.js";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

const SLOW_DOWN = [429, { "Retry-After": "90" }, "slow down"];

function liveTest(name, options, body) {
  test(name, { timeout: options.timeout ?? 80000 }, async () => {
    const daemon = await Daemon.start("proxy.workers=2", 'proxy.drain="1s"');
    const origin = await Origin.start();
    try {
      const page = await open(browser, daemon, options.context);
      try {
        await body(page, daemon, origin);
        assert.deepEqual(page.problems, []);
      } catch (problem) {
        await shoot(page, `failed-${name.replace(/\W+/g, "-")}`);
        throw problem;
      } finally {
        await page.context().close();
      }
    } finally {
      origin.stop();
      await daemon.stop();
    }
  });
}

const row = (page, key) => page.locator("#rows .row", { has: page.getByText(key, { exact: true }) });
const trip = async (daemon, origin) => {
  origin.answer = SLOW_DOWN;
  assert.equal((await daemon.fetch(origin.url)).status, 429);
};

liveTest("a trip shows by itself, with a countdown that runs, and its end", {}, async (page, daemon, origin) => {
  await page.getByText("No traffic yet").waitFor();
  assert.equal((await daemon.fetch(origin.url)).status, 200);
  await row(page, origin.key).locator(".state[data-state=closed]").waitFor();
  await trip(daemon, origin);
  const mine = row(page, origin.key);
  await mine.locator(".state[data-state=open]").waitFor();
  assert.match(await mine.locator(".key span").textContent(), /429 Too Many Requests/);
  const countDown = mine.locator(".count-down");
  const first = await countDown.textContent();
  assert.match(first, /^1:[0-3]\d$/);
  await page.waitForFunction(([node, text]) => node.textContent !== text, [await countDown.elementHandle(), first]);
  await page.locator("#events").getByText(`${origin.key} is cooling down after 429`).first().waitFor();
  await page.waitForFunction((key) => document.querySelector("#announce").textContent.includes(key), origin.key);
  assert.equal((await daemon.fetch(origin.url)).status, 503);
  await page.waitForFunction(() => /[1-9]/.test(document.querySelector("#rows .row").children[7].textContent)); // refused
  origin.answer = [200, {}, "ok"];
  await daemon.command("close", origin.key);
  await mine.locator(".state[data-state=closed]").waitFor();
  assert.equal((await daemon.fetch(origin.url)).status, 200);
});

liveTest("stop and resume from the page, and what the command line did", {}, async (page, daemon, origin) => {
  assert.equal((await daemon.fetch(origin.url)).status, 200);
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.getByLabel("Reason").fill("the bill <b>grows</b>");
  assert.equal((await daemon.fetch(origin.url)).status, 200, "not before the question is answered");
  await page.locator("#confirm-yes").click();
  await page.locator("#banners").getByText("Everything is stopped", { exact: true }).waitFor();
  assert.match(await page.locator(".banner.bad").textContent(), /the bill <b>grows<\/b>/);
  const reached = async (status) => {
    for (let i = 0; i < 100; i += 1) {
      const answer = await daemon.fetch(origin.url);
      if (answer.status === status) return answer;
      await page.waitForTimeout(50);
    }
    throw new Error(`never ${status}`);
  };
  assert.equal((await reached(503)).reason, "emergency-stop");
  await shoot(page, "live-stopped");
  await page.getByRole("button", { name: "Resume…" }).click();
  await page.locator("#confirm-yes").click();
  await page.locator("#stop").waitFor();
  await reached(200);
  await daemon.command("stop", "--reason", "by hand");
  await page.locator("#banners").getByText("by hand").waitFor();
  await daemon.command("resume");
  await page.locator("#stop").waitFor();
});

liveTest("open and close a key, with a question before each", {}, async (page, daemon, origin) => {
  assert.equal((await daemon.fetch(origin.url)).status, 200);
  await row(page, origin.key).click();
  await page.getByRole("button", { name: "Open…" }).click();
  assert.equal((await daemon.fetch(origin.url)).status, 200, "a question shuts nothing");
  await page.getByLabel("For").selectOption("1 hour");
  await page.getByLabel("Reason").fill("maintenance");
  await page.locator("#confirm-yes").click();
  await page.locator("#detail .state[data-state=open]").waitFor();
  assert.match(await page.locator("#detail .sentence").textContent(), /maintenance/);
  const refused = await daemon.fetch(origin.url);
  assert.deepEqual(refused, { status: 503, reason: "breaker-open" });
  await page.getByRole("button", { name: "Close…" }).click();
  await page.locator("#confirm-yes").click();
  await page.locator("#detail .state[data-state=closed]").waitFor();
  assert.equal((await daemon.fetch(origin.url)).status, 200);
});

liveTest("the name of a job is a word, whatever its client wrote", {}, async (page, daemon, origin) => {
  assert.equal((await daemon.fetch(origin.url, "<img src=x onerror=alert(1)>")).status, 200);
  await page.locator("#jobs").getByText("_img_src_x_onerror_alert_1__", { exact: true }).waitFor();
  assert.equal(await page.locator("main script, main iframe, main img").count(), 0);
});

liveTest("events that are counted anew are followed from their beginning", {}, async (page, daemon, origin) => {
  const told = page.locator("#events").getByText(`${origin.key} was shut for`);
  for (let i = 0; i < 5; i += 1) await daemon.command("open", origin.key, "--for", "10m");
  await page.waitForFunction(() => document.querySelectorAll("#events li").length >= 5);
  await daemon.forget();
  await daemon.command("open", origin.key, "--for", "10m", "--reason", "another life");
  await page.locator("#events").getByText("another life").waitFor();
  assert.equal(await told.count(), 1, "what the other life had is gone");
  page.problems = page.problems.filter((text) => !/ERR_CONNECTION|ERR_INCOMPLETE/.test(text)); // while nobody was there
});

for (const [name, context] of [
  ["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }],
  ["phone", { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }]]) {
  liveTest(`real traffic, ${name}`, { context }, async (page, daemon, origin) => {
    const others = await Promise.all([Origin.start(), Origin.start()]);
    try {
      for (const one of others) for (let i = 0; i < 5; i += 1) await daemon.fetch(one.url);
      await trip(daemon, origin);
      await row(page, origin.key).locator(".state[data-state=open]").waitFor();
      for (const one of others) await row(page, one.key).waitFor();
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing is cut off");
      const dark = await page.evaluate(() => {
        const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
        return red + green + blue < 384;
      });
      if (name !== "phone") assert.equal(dark, name === "dark");
      await shoot(page, `live-${name}`);
    } finally {
      others.forEach((one) => one.stop());
    }
  });
}

// Every address below 127 is this machine, and nobody listens on these: a key each, and no origin.
liveTest("10,000 real keys: a screenful of elements, every key within reach", { timeout: 300000 }, async (page, daemon, origin) => {
  const keys = [];
  for (let i = 0; i < 9999; i += 1) keys.push(`127.1.${i >> 8}.${i & 255}:9`);
  let next = 0;
  const client = async () => { while (next < keys.length) await daemon.fetch(`http://${keys[next++]}/`); };
  await Promise.all(Array.from({ length: 16 }, client));
  await trip(daemon, origin);
  await page.waitForFunction(() => document.querySelector("#keys-count").textContent === "10000 keys", null, { timeout: 120000 });
  const elements = () => page.evaluate(() => ({ rows: document.querySelectorAll("#rows .row").length, all: document.querySelectorAll("*").length }));
  const few = await elements();
  assert.ok(few.rows < 80 && few.all < 4000, JSON.stringify(few));
  assert.equal(await page.locator("#rows .row b").first().textContent(), origin.key, "what needs a person comes first");

  await page.getByLabel("Search keys and policies").fill("127.1.39.14:");
  await page.waitForFunction(() => document.querySelector("#keys-count").textContent === "1 of 10000 keys");
  assert.equal(await page.locator("#rows .row b").first().textContent(), "127.1.39.14:9");
  await page.getByLabel("Search keys and policies").fill("");
  await page.waitForFunction(() => document.querySelector("#keys-count").textContent === "10000 keys");
  await page.locator("#columns").getByRole("button", { name: "Key" }).click();
  await page.waitForFunction((key) => document.querySelector("#row-0 b")?.textContent === key, origin.key);
  await page.locator("#grid").focus();
  await page.keyboard.press("End");
  await page.waitForFunction(() => /^127\.1\./.test(document.querySelector("#row-9999 b")?.textContent));
  const still = await elements();
  assert.ok(still.rows < 80 && still.all < 4000, JSON.stringify(still));
  await shoot(page, "live-many");
});
