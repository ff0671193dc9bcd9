// Reports of `ringflake tune` in a browser: nothing is asked for beside the page,
// nothing goes wrong, nothing is wider than the screen, and everything can be read.
//
//   node report.mjs SCREENSHOTS NAME.STATUS.html ...
//
// STATUS is the exit status of the command that wrote the page.

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { run, THEMES } from "./browser.mjs";

const [screenshots, ...files] = process.argv.slice(2);
assert(files.length > 0, "usage: node report.mjs SCREENSHOTS NAME.STATUS.html ...");

const cases = files.flatMap((file) =>
  THEMES.flatMap((theme) =>
    [390, 1400].map((width) => ({
      name: `tune-${basename(file, ".html")}-${width}-${theme}`,
      file,
      theme,
      width,
    })),
  ),
);
await run(screenshots, cases, check);

async function check(page, { name, address, file, theme }) {
  const errors = [];
  const requests = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });

  assert.deepEqual(errors, [], "nothing goes wrong");
  const others = requests.filter((url) => url !== address && !url.startsWith("data:"));
  assert.deepEqual(others, [], "nothing is asked for");

  const found = await page.evaluate(look);
  assert.equal(found.overflow, 0, "the page is wider than the screen");
  assert.deepEqual(found.outside, [], "something is cut off");
  assert.deepEqual(found.nameless, [], "pictures without a title or a text");
  assert.deepEqual(found.overlong, [], "text is drawn beyond its picture");
  assert.deepEqual(found.overlaps, [], "text lies on data or on text");
  assert.equal(found.tables, found.boxes, "every table has its box");
  const bright = found.paper > 0.5;
  assert.equal(bright, theme === "light", `paper of brightness ${found.paper}`);
  assert.deepEqual(found.faint, [], "text that is hard to read");

  const status = basename(file).split(".").at(-2);
  // A run that measured nothing has none.
  const pictures = status !== "0" && found.pictures === 0 ? 0 : 4;
  assert.equal(found.pictures, pictures, "the load, the level, the latency and the thresholds");
  assert.equal(found.grade, status === "0" ? "good" : "bad", `status ${status}`);
  assert.equal(found.headline, status === "0" ? "Served" : "Not confirmed");
  assert.match(found.sign, /^[\u2713\u00d7]$/, "a sign beside the colour");
  if (found.code !== null) {
    assert.match(found.code, /^use [^]*\nfn main\(\) -> Result<\(\), Box<dyn std::error::Error>> \{\n/);
  }
}

// Runs in the page.
function look() {
  const { behind, contrast, faintTexts, luminance, overlaps } = measure;
  const root = document.documentElement;
  const seen = (it) => it.getClientRects().length > 0;
  const text = (it) => it.textContent.trim().replace(/\s+/g, " ");
  const start = (it) => it.outerHTML.slice(0, 80);
  const pictures = [...document.querySelectorAll("svg")].filter(seen);
  const texts = pictures.flatMap((svg) => [...svg.querySelectorAll("text")].map((text) => [svg, text]));
  const blocks = [...document.querySelectorAll("h1, h2, p, li, dt, dd, pre, figure, svg, .box, summary")];
  const words = [...document.querySelectorAll("h1, h2, p, li, dt, dd, code, figcaption, summary, .sign")];
  const faintWords = words
    .filter((it) => seen(it) && contrast(getComputedStyle(it).color, behind(it)) < 4.5)
    .map((it) => it.textContent.slice(0, 60));
  const verdict = document.querySelector(".verdict");
  const code = document.querySelector("pre[aria-label='The program']");
  return {
    overflow: Math.max(0, root.scrollWidth - root.clientWidth),
    outside: blocks
      .filter(seen)
      .filter((it) => it.getBoundingClientRect().right > root.clientWidth + 0.5)
      .map(start),
    pictures: pictures.length,
    nameless: pictures
      .filter((svg) => !svg.querySelector("title")?.textContent || !svg.querySelector("desc")?.textContent)
      .map(start),
    overlong: texts
      .filter(([svg, text]) => {
        const [inner, outer] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
        return inner.left < outer.left - 1 || inner.right > outer.right + 1;
      })
      .map(([, it]) => text(it)),
    overlaps: pictures.flatMap(overlaps),
    tables: document.querySelectorAll("table").length,
    boxes: document.querySelectorAll(".box > table").length,
    paper: luminance(getComputedStyle(document.body).backgroundColor),
    faint: [...faintWords, ...pictures.flatMap(faintTexts)],
    grade: verdict.classList[1],
    headline: text(verdict.querySelector("h2")),
    sign: text(verdict.querySelector(".sign")),
    code: code && code.textContent,
  };
}
