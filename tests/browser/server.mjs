// The page of `ringflake serve` in a browser, while IDs are taken: it sends requests to its own
// server only, nothing fails, everything can be read, and its figures move.
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
cases.push(
  { name: "serve-many-1100-light", url: `${open}/`, theme: "light", width: 1100 },
  { name: "serve-many-390-dark", url: `${open}/`, theme: "dark", width: 390 },
  { name: "serve-token", url: `${guarded}/`, theme: "light", width: 1100 },
);

// As many namespaces as clients may begin by default.
const MANY = 64;

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
  const isMany = name.startsWith("serve-many");
  if (name === "serve-token") await useToken(page, state);
  if (isMany) await beginMany();
  await state.getByText("ready").waitFor({ timeout: 10000 });
  if (isMany) await showsMany(page);
  else if (name !== "serve-token") await moves(page);
  if (name !== "serve-token") await looksRight(page, theme);
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
  await page.unrouteAll({ behavior: "wait" });
  if (name === "serve-token") await goesStale(page, state);
  assert.deepEqual(errors, [], "nothing goes wrong");
  const [own, paths] = [new URL(address).origin, new Set(requests.map((url) => new URL(url).pathname))];
  assert.deepEqual(requests.filter((url) => new URL(url).origin !== own), [], "nobody else is asked");
  paths.delete("/favicon.ico");
  assert.deepEqual([...paths].sort(), ["/", "/v1/status"]);
});

function row(page, name) {
  return page.locator("details").filter({ has: page.locator("summary .name").getByText(name, { exact: true }) });
}

// Until the page has drawn another answer than the one that it shows.
async function isDrawnAgain(page) {
  const table = await page.locator("#protocols table").elementHandle();
  await page.waitForFunction((table) => !table.isConnected, table);
}

// A busy machine may take no ID between two looks of the page.
async function comesTo(read, pattern) {
  const deadline = Date.now() + 60000;
  for (;;) {
    const text = await read();
    if (pattern.test(text)) return;
    assert(Date.now() < deadline, `${text} never matches ${pattern}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// The busy namespace has a rate, and its count grows from one look to another.
async function moves(page) {
  const orders = row(page, "orders");
  assert.equal(await page.locator("details[open]").count(), 0, "two namespaces are closed at first");
  await orders.locator("summary").click();
  const figure = (label) => orders.locator(".numbers div").filter({ hasText: label }).locator("b");
  const read = async (label) => (await figure(label).textContent()).trim();
  await page.waitForFunction(() => document.querySelectorAll("details svg path[d*='L']").length === 2);
  const before = await read("IDs since start");
  await page.waitForFunction(
    (before) => ![...document.querySelectorAll("details .numbers b")].some((it) => it.textContent === before),
    before,
  );
  await comesTo(() => read("IDs/s"), /^[1-9]/);
  assert.match(await read("left without the store"), /^\d+ (s|min)$/);
  await comesTo(() => orders.locator("summary").innerText(), /^orders\s+\u2713 ready\s+[1-9][\d.,]*( [kMG])? IDs\/s/);
  assert.ok((await orders.locator("rect").count()) >= 1, "a lease is drawn");
  assert.equal(await orders.locator("li").count(), 0, "there are no alerts");
  await hasTimeAxes(orders);
  const all = await page.locator("main").textContent();
  assert.doesNotMatch(all, /NaN|undefined|Infinity|\[object/);
}

// Two curves of the last two minutes, and the leases around now.
async function hasTimeAxes(details) {
  const pictures = await details.locator("svg").all();
  const labels = [];
  for (const picture of pictures) labels.push(await picture.locator("text.tick").allTextContents());
  assert.equal(labels.length, 3);
  for (const curve of labels.slice(0, 2)) {
    assert.deepEqual([curve[0], curve.at(-1)], ["\u22122 min", "now"], "a curve's axis of time");
    assert.ok(curve.length >= 3, `${curve}`);
  }
  assert.ok(labels[2].includes("now") && labels[2].some((it) => /^\+\d+ (s|min)$/.test(it)), `leases: ${labels[2]}`);
}

async function beginMany() {
  for (let at = 2; at < MANY; at += 1) await take(open, `tenant-${at}`, 1);
}

async function showsMany(page) {
  const rows = page.locator("details:visible summary");
  const found = page.locator("#found");
  const search = page.getByRole("searchbox", { name: "Search" });
  const shows = async (count) => {
    await found.getByText(`${count} of ${MANY}`, { exact: true }).waitFor({ timeout: 10000 });
    assert.equal(await rows.count(), count);
  };
  await shows(MANY);
  const line = /^(orders|users|tenant-\d+)\s+\u2713 ready\s+[\d.,]+( [kMG])? IDs\/s\s+ring \d+ %\s+lease \d+ (s|min)$/;
  for (const text of await rows.allInnerTexts()) assert.match(text.trim(), line);
  assert.equal(await page.locator("svg").count(), 0, "details are hidden until somebody asks for them");

  await search.fill("TENANT-6");
  await shows(5);
  await isDrawnAgain(page);
  await shows(5);

  // With the keyboard alone: behind the search and the box is the first namespace found.
  await search.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const first = page.locator("details[open]");
  assert.equal(await first.locator(".name").textContent(), "tenant-6");
  await isDrawnAgain(page);
  const focused = await page.evaluate(() => document.activeElement.parentElement.open);
  assert.equal(focused, true, "the open line keeps the focus while figures change");
  await hasTimeAxes(first);
  await page.keyboard.press("Enter");
  await first.waitFor({ state: "detached", timeout: 10000 });

  // One that is not ready, with markup in what the server says of it.
  const why = "No lease <img src=x onerror=alert(1)> is in force.";
  let dataDir;
  await page.route("**/v1/status", async (route) => {
    const response = await route.fetch();
    const status = await response.json();
    const one = status.namespaces.find(({ name }) => name === "tenant-7");
    Object.assign(status, { data_dir: dataDir });
    Object.assign(one, { ready: false, can_go_on_ms: 0, holds: [], alerts: [{ severity: "critical", text: why }] });
    await route.fulfill({ response, json: status });
  });
  await search.fill("");
  await page.getByLabel("only with alerts").check();
  await shows(1);
  assert.match(await rows.innerText(), /^tenant-7\s+\u00d7 not ready\s/);
  assert.equal(await rows.locator(".why").textContent(), why);
  assert.match(await page.locator("#state").textContent(), /not ready: 1 of 64 namespaces$/);
  await rows.click();
  assert.equal(await page.locator("details[open] li").textContent(), `\u00d7\u2002${why}`);
  assert.equal(await page.locator("img").count(), 0, "text of the server is markup");
  await page.getByLabel("only with alerts").uncheck();
  await shows(MANY);

  dataDir = "the data directory can't be used";
  await page.locator("#state").getByText(`not ready: ${dataDir}`).waitFor({ timeout: 10000 });
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
    const seen = [...document.querySelectorAll("h1, h2, h3, label, span, b, p, li, td, th")].filter(
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
  const field = page.getByLabel("Admin token");
  await field.waitFor({ timeout: 10000 });
  await field.fill("not-the-token-at-all");
  await page.getByRole("button").click();
  await state.getByText("does not accept this token").waitFor({ timeout: 10000 });
  await field.fill(token);
  await page.getByRole("button").click();
  await page.locator("details").first().waitFor({ timeout: 10000 });
  assert.equal(await field.isVisible(), false, "the form is gone");
}
