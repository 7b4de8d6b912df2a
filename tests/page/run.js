// Runs the tests, two at a time at most, and ends with `N passed, N failed`.
import { run } from "node:test";
import { fileURLToPath } from "node:url";

const counts = { passed: 0, failed: 0 };
const report = (verdict, { name, details }, nesting) => {
  if (nesting > 0 || name.endsWith("_test.js")) return;
  counts[verdict] += 1;
  console.log(`${verdict.padEnd(7)} page: ${name}  ${(details.duration_ms / 1000).toFixed(1)} s`);
  if (verdict === "failed") console.log(String(details.error?.cause?.stack ?? details.error).replace(/^/gm, "        "));
};

const patterns = process.argv.slice(2);
const stream = run({
  files: ["page_test.js", "live_test.js"].map((name) => fileURLToPath(new URL(name, import.meta.url))),
  testNamePatterns: patterns.length > 0 ? patterns : undefined,
});
stream.on("test:pass", (data) => { if (data.skip === undefined) report("passed", data, data.nesting); });
stream.on("test:fail", (data) => report("failed", data, data.nesting));
stream.on("test:stdout", (data) => process.stdout.write(data.message));
stream.on("test:stderr", (data) => process.stderr.write(data.message));
stream.on("end", () => {
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exitCode = counts.failed > 0 ? 1 : 0;
});
stream.resume();
