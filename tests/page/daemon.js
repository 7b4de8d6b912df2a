// The built proxy with its own admin side, origins that answer as told, and clients that go through.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { BUILD } from "./browser.js";

const SLUICE = join(BUILD, "sluice");
const POLICY = 'hosts = ["*"]\n[hold]\nmax_wait = "0s"\n[retry]\nmax = 0\n[pace]\nadapt = "off"\n';

export class Daemon {
  static async start(...settings) {
    const daemon = new Daemon();
    daemon.directory = mkdtempSync(join(tmpdir(), "sluice-live-"));
    daemon.state = join(daemon.directory, "state");
    const policies = join(daemon.directory, "policies");
    mkdirSync(policies);
    writeFileSync(join(policies, "page.toml"), POLICY);
    daemon.environment = { PATH: process.env.PATH, HOME: daemon.directory, XDG_CONFIG_HOME: daemon.directory };
    daemon.settings = ["--policies", policies, ...settings.flatMap((setting) => ["--set", setting])];
    await daemon.launch("127.0.0.1:0");
    return daemon;
  }

  async launch(admin) {
    this.process = spawn(SLUICE, ["run", "--listen", "127.0.0.1:0", "--admin", admin, "--state-dir", this.state, ...this.settings],
      { stdio: ["ignore", "pipe", "pipe"], env: this.environment });
    this.process.stderr.on("data", (text) => { this.log += text; });
    const { value } = await createInterface({ input: this.process.stdout })[Symbol.asyncIterator]().next();
    const told = /proxy (\S+):(\d+), admin (\S+),/.exec(value ?? "");
    if (!told) throw new Error(`no proxy: ${value} ${this.log}`);
    this.port = Number(told[2]);
    this.url = told[3];
    this.token = readFileSync(join(this.state, "admin.token"), "utf8").trim();
  }

  // Starts again at the same address, and remembers nothing.
  async forget() {
    await this.end();
    for (const file of ["data.mdb", "lock.mdb"]) rmSync(join(this.state, file));
    await this.launch(new URL(this.url).host);
  }

  log = "";

  // The status and the reason of one GET, by a job when one is named.
  fetch(url, job) {
    return new Promise((resolve, reject) => {
      const headers = { Host: new URL(url).host, Connection: "close" };
      if (job) headers["Proxy-Authorization"] = `Basic ${Buffer.from(`${job}:`).toString("base64")}`;
      request({ host: "127.0.0.1", port: this.port, path: url, headers }, (answer) => {
        answer.resume();
        answer.on("end", () => resolve({ status: answer.statusCode, reason: answer.headers["sluice-reason"] }));
      }).on("error", reject).end();
    });
  }

  // What a command prints.
  command(...words) {
    return new Promise((resolve, reject) => {
      const child = spawn(SLUICE, [...words, "--state-dir", this.state], { env: this.environment });
      let text = "";
      child.stdout.on("data", (more) => { text += more; });
      child.stderr.on("data", (more) => { text += more; });
      child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(`${words}: ${code}: ${text}`))));
    });
  }

  async end() {
    const ended = new Promise((resolve) => { this.process.once("exit", resolve); });
    this.process.kill("SIGTERM");
    await ended;
  }

  async stop() {
    await this.end();
    rmSync(this.directory, { recursive: true });
  }
}

// Answers with `origin.answer`: [status, headers, body].
export class Origin {
  static async start() {
    const origin = new Origin();
    origin.answer = [200, {}, "ok"];
    origin.count = 0;
    origin.server = createServer((_request, response) => {
      origin.count += 1;
      const [status, headers, body] = origin.answer;
      response.writeHead(status, headers).end(body);
    });
    await new Promise((resolve) => { origin.server.listen(0, "127.0.0.1", resolve); });
    origin.key = `127.0.0.1:${origin.server.address().port}`;
    origin.url = `http://${origin.key}/`;
    return origin;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}
