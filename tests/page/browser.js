// What the page's tests stand on: a Chromium, an admin side with a source that obeys, and pages
// that count every word on their console as a failure.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

export const BUILD = process.env.SLUICE_BUILD ?? "build";
const SHOTS = join(BUILD, "page");

// No sandbox because tests may run as root; the others keep it from calling home.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const launch = () => chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });

export class Admin {
  // `minute`: ms that count as a minute of history.
  static async start(minute = 60000) {
    const admin = new Admin();
    admin.directory = mkdtempSync(join(tmpdir(), "sluice-page-"));
    admin.process = spawn(join(BUILD, "tests/fake_admin"), [admin.directory, String(minute)], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: admin.process.stdout });
    admin.lines = lines[Symbol.asyncIterator]();
    admin.address = await admin.line();
    admin.url = `http://${admin.address}/`;
    admin.token = readFileSync(join(admin.directory, "admin.token"), "utf8").trim();
    return admin;
  }

  async line() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the admin side ended");
    return value;
  }

  async tell(order) {
    this.process.stdin.write(`${JSON.stringify(order)}\n`);
    return this.line();
  }

  async orders() {
    return JSON.parse(await this.tell({ do: "orders" }));
  }

  async stop() {
    const ended = new Promise((resolve) => { this.process.once("exit", resolve); });
    this.process.stdin.end();
    await ended;
    rmSync(this.directory, { recursive: true });
  }
}

export async function open(browser, admin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.problems.push(message.text());
  });
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("dialog", (dialog) => { page.problems.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(admin.url)) page.problems.push(`asked for ${request.url()}`);
  });
  await page.goto(`${admin.url}#token=${admin.token}`);
  await page.locator("#link[data-state=live]").waitFor();
  return page;
}

export async function shoot(page, name, options = {}) {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), animations: "disabled", ...options });
}
