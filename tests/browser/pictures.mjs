// Pictures that stand alone: each is readable in the light theme and in the dark one.
//
//   node pictures.mjs SCREENSHOTS PICTURE.svg ...

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { run, THEMES } from "./browser.mjs";

const [screenshots, ...files] = process.argv.slice(2);
assert(files.length > 0, "usage: node pictures.mjs SCREENSHOTS PICTURE.svg ...");

const cases = files.flatMap((file) =>
  THEMES.map((theme) => ({ name: `${basename(file, ".svg")}-${theme}`, file, theme, width: 1240 })),
);
await run(screenshots, cases, async (page, { name, address, theme }) => {
  await page.goto(address, { waitUntil: "load" });
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
  const { brightness, faint } = await page.evaluate(() => {
    const svg = document.documentElement;
    const background = getComputedStyle(svg).backgroundColor;
    const first = svg.querySelector("rect");
    const isDrawn = background === "rgba(0, 0, 0, 0)" && first;
    const paper = isDrawn ? getComputedStyle(first).fill : background;
    return { brightness: measure.luminance(paper), faint: measure.faintTexts(svg) };
  });
  assert.equal(brightness > 0.5, theme === "light", `paper of brightness ${brightness}`);
  assert.deepEqual(faint, [], "text that is hard to read");
});
