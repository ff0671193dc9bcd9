// What both checks share: a browser, a page in each theme, and the report of failures.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const THEMES = ["light", "dark"];

// Runs `check` with a page for each case, { name, file or url, theme, width }, and exits.
export async function run(screenshots, cases, check) {
  mkdirSync(screenshots, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // The checks may run as root, where Chromium has no sandbox.
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  let failures = 0;
  for (const { name, file, url, theme, width } of cases) {
    const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 } });
    await context.addInitScript({ path: resolve(import.meta.dirname, "measure.js") });
    try {
      const address = url ?? pathToFileURL(resolve(file)).href;
      await check(await context.newPage(), { name, address, file, theme });
      console.log(`ok    ${name}`);
    } catch (error) {
      failures += 1;
      console.log(`FAIL  ${name}: ${error.message}`);
    }
    await context.close();
  }
  await browser.close();
  process.exit(failures > 0 ? 1 : 0);
}
