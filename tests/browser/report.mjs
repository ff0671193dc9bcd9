// The report of `ringflake tune` in a browser: nothing is asked for beside the
// page, nothing goes wrong, and nothing is wider than the screen.
//
//   node report.mjs PAGE.html SCREENSHOTS

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [page_file, screenshots] = process.argv.slice(2);
assert(page_file && screenshots, "usage: node report.mjs PAGE.html SCREENSHOTS");
const address = pathToFileURL(resolve(page_file)).href;
mkdirSync(screenshots, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // The checks may run as root, where Chromium has no sandbox.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

let failures = 0;
for (const colorScheme of ["light", "dark"]) {
  for (const width of [390, 1400]) {
    const name = `tune-${width}-${colorScheme}`;
    try {
      await check(name, width, colorScheme);
      console.log(`ok    ${name}`);
    } catch (error) {
      failures += 1;
      console.log(`FAIL  ${name}: ${error.message}`);
    }
  }
}
await browser.close();
process.exit(failures > 0 ? 1 : 0);

async function check(name, width, colorScheme) {
  const context = await browser.newContext({
    colorScheme,
    viewport: { width, height: 900 },
  });
  const page = await context.newPage();
  const errors = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  // With the tables open: they are the widest.
  for (const details of await page.locator("details").all()) {
    await details.evaluate((it) => (it.open = true));
  }
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });

  assert.deepEqual(errors, [], "nothing goes wrong");
  const others = requests.filter((url) => url !== address && !url.startsWith("data:"));
  assert.deepEqual(others, [], "nothing is asked for");

  const found = await page.evaluate(measure);
  assert.equal(found.overflow, 0, "the page is wider than the screen");
  assert.deepEqual(found.outside, [], "something is cut off");
  assert.ok(found.pictures >= 2, `${found.pictures} pictures`);
  assert.deepEqual(found.nameless, [], "pictures without a title or a text");
  assert.deepEqual(found.overlong, [], "text is drawn beyond its picture");
  assert.equal(found.tables, found.boxes, "every table has its box");
  const bright = found.paper > 0.5;
  assert.equal(bright, colorScheme === "light", `paper of brightness ${found.paper}`);
  assert.deepEqual(found.faint, [], "text that is hard to read");
  await context.close();
}

// Runs in the page.
function measure() {
  const root = document.documentElement;
  const seen = (it) => it.getClientRects().length > 0;
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const paper = getComputedStyle(document.body).backgroundColor;
  const pictures = [...document.querySelectorAll("svg")].filter(seen);
  const texts = pictures.flatMap((svg) => [...svg.querySelectorAll("text")].map((text) => [svg, text]));
  const blocks = [...document.querySelectorAll("h1, h2, p, li, dt, dd, pre, figure, svg, .box, summary")];
  return {
    overflow: Math.max(0, root.scrollWidth - root.clientWidth),
    outside: blocks
      .filter(seen)
      .filter((it) => it.getBoundingClientRect().right > root.clientWidth + 0.5)
      .map((it) => it.outerHTML.slice(0, 80)),
    pictures: pictures.length,
    nameless: pictures
      .filter((svg) => !svg.querySelector("title")?.textContent || !svg.querySelector("desc")?.textContent)
      .map((svg) => svg.outerHTML.slice(0, 80)),
    overlong: texts
      .filter(([svg, text]) => {
        const [inner, outer] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
        return inner.left < outer.left - 1 || inner.right > outer.right + 1;
      })
      .map(([, text]) => text.textContent.trim()),
    tables: document.querySelectorAll("table").length,
    boxes: document.querySelectorAll(".box > table").length,
    paper: luminance(paper),
    faint: [...document.querySelectorAll("h1, h2, p, li, dt, dd, figcaption, summary")]
      .filter(seen)
      .filter((it) => contrast(getComputedStyle(it).color, paper) < 4.5)
      .map((it) => it.textContent.slice(0, 60)),
  };
}
