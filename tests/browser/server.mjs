// The page of `ringflake serve` in a browser, while IDs are taken: it asks its own server
// alone, nothing goes wrong, everything can be read, and its figures move.
//
//   node server.mjs SCREENSHOTS OPEN GUARDED TOKEN PID
//
// OPEN and GUARDED are the addresses of two servers. The figures of the second need TOKEN,
// and PID is its process, which is stopped for some seconds.

import assert from "node:assert/strict";
import { join } from "node:path";
import { run, THEMES } from "./browser.mjs";

const [screenshots, open, guarded, token, pid] = process.argv.slice(2);
assert(pid, "usage: node server.mjs SCREENSHOTS OPEN GUARDED TOKEN PID");

const cases = THEMES.flatMap((theme) =>
  [390, 1100].map((width) => ({ name: `serve-${width}-${theme}`, url: `${open}/`, theme, width })),
);
cases.push({ name: "serve-token", url: `${guarded}/`, theme: "light", width: 1100 });

// Two namespaces, one of which is busy.
const take = async (server, namespace, count, headers = {}) => {
  const answer = await fetch(`${server}/v1/ids?namespace=${namespace}&count=${count}`, { method: "POST", headers });
  assert.equal(answer.status, 200, await answer.text());
};
await take(open, "users", 3);
await take(open, "orders", 1);
await take(guarded, "orders", 1, { authorization: `Bearer ${token}` });
let busy = true;
const load = (async () => {
  while (busy) {
    await take(open, "orders", 20000);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
})();
load.catch((error) => {
  console.log(`FAIL  load: ${error.message}`);
  process.exit(1);
});

await run(screenshots, cases, async (page, { name, address, theme }) => {
  const errors = [];
  const requests = [];
  page.on("console", (message) => {
    // The browser itself reports an answer of 401.
    const isOdd = ["error", "warning"].includes(message.type()) && !/status of 401/.test(message.text());
    if (isOdd) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(address, { waitUntil: "load" });
  const state = page.locator("#state");
  if (name === "serve-token") await useToken(page, state);
  await state.getByText("ready").waitFor({ timeout: 10000 });
  if (name !== "serve-token") {
    await moves(page);
    await looksRight(page, theme);
  }
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  if (name === "serve-token") await goesStale(page, state);
  assert.deepEqual(errors, [], "nothing goes wrong");
  const [own, paths] = [new URL(address).origin, new Set(requests.map((url) => new URL(url).pathname))];
  assert.deepEqual(requests.filter((url) => new URL(url).origin !== own), [], "nobody else is asked");
  paths.delete("/favicon.ico");
  assert.deepEqual([...paths].sort(), ["/", "/v1/status"]);
});

// The busy one is found, with a rate, and its count grows from one look to another.
async function moves(page) {
  const orders = page.locator("section").filter({ has: page.getByRole("heading", { name: "orders", exact: true }) });
  const figure = (label) => orders.locator(".number").filter({ hasText: label }).locator("b");
  const read = async (label) => (await figure(label).textContent()).trim();
  await page.waitForFunction(() => document.querySelectorAll("section svg path[d*='L']").length >= 4);
  const before = await read("IDs since the start");
  await page.waitForFunction(
    (before) => ![...document.querySelectorAll("section .number b")].some((it) => it.textContent === before),
    before,
  );
  assert.match(await read("IDs a second"), /^[1-9]/);
  assert.match(await read("to go on without the store"), /^\d+ (s|min)$/);
  assert.ok((await orders.locator("rect").count()) >= 1, "a lease is drawn");
  assert.equal(await page.locator(".alerts li").count(), 0, "nothing is the matter");
  const all = await page.locator("main").textContent();
  assert.doesNotMatch(all, /NaN|undefined|Infinity|\[object/);
}

// A stopped server accepts connections and never answers.
async function goesStale(page, state) {
  process.kill(Number(pid), "SIGSTOP");
  try {
    await state.getByText("no answer").waitFor({ timeout: 20000 });
    assert.equal(await page.locator("main.stale").count(), 1, "old figures look old");
    assert.match(await state.textContent(), / old$/);
  } finally {
    process.kill(Number(pid), "SIGCONT");
  }
  await state.getByText("ready").waitFor({ timeout: 20000 });
  assert.equal(await page.locator("main.stale").count(), 0);
}

async function looksRight(page, theme) {
  const found = await page.evaluate(() => {
    const { behind, contrast, faintTexts, luminance, overlaps } = measure;
    const root = document.documentElement;
    const seen = [...document.querySelectorAll("h1, h2, h3, span, b, p, li, td, th")].filter(
      (it) => it.getClientRects().length > 0,
    );
    const pictures = [...document.querySelectorAll("svg")];
    return {
      overflow: Math.max(0, root.scrollWidth - root.clientWidth),
      nameless: pictures.filter((it) => !it.querySelector("title")?.textContent).length,
      paper: luminance(getComputedStyle(document.body).backgroundColor),
      overlaps: pictures.flatMap(overlaps),
      faint: [
        ...seen
          .filter((it) => contrast(getComputedStyle(it).color, behind(it)) < 4.5)
          .map((it) => it.textContent.slice(0, 60)),
        ...pictures.flatMap(faintTexts),
      ],
    };
  });
  assert.equal(found.overflow, 0, "the page is wider than the screen");
  assert.equal(found.nameless, 0, "a picture without a name");
  assert.deepEqual(found.overlaps, [], "text lies on text");
  assert.equal(found.paper > 0.5, theme === "light", `paper of brightness ${found.paper}`);
  assert.deepEqual(found.faint, [], "text that is hard to read");
}

async function useToken(page, state) {
  const field = page.getByLabel(/admin token/);
  await field.waitFor({ timeout: 10000 });
  await field.fill("not-the-token-at-all");
  await page.getByRole("button").click();
  await state.getByText("not the token").waitFor({ timeout: 10000 });
  await field.fill(token);
  await page.getByRole("button").click();
  await page.locator("section").first().waitFor({ timeout: 10000 });
  assert.equal(await field.isVisible(), false, "the question is gone");
}
