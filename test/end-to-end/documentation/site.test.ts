import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { groupsOf, writtenSections } from "../../../src/documentation/contents.ts";
import { settings, variables } from "../../../src/documentation/setting-texts.ts";
import { headerTexts } from "../../../src/documentation/header-texts.ts";
import { buildDocumentation } from "../../../src/app/parts/build-operations.ts";
import { staticFiles } from "../../../src/documentation/documentation-site.ts";
import { endpoints } from "../../../src/endpoints/index.ts";
import { describedEndpoints } from "../../../src/http/open-api/open-api.ts";
import { errorCatalog } from "../../../src/platform/kernel/errors.ts";
import { metricTable } from "../../../src/platform/telemetry/metric-families.ts";
import {
  axeFindings,
  contrastFindings,
  hasChromium,
  missingChromium,
  sidewaysPixels,
  startChromium,
  type OwnWindows,
} from "../../support/chromium.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { endProcesses, temporaryDirectory } from "../../support/process.ts";
import { signedInSessions } from "../api/credential-sessions.ts";
import { jsonOf, runCommand } from "../command/run-command.ts";

const root = join(import.meta.dir, "..", "..", "..");
const site = await buildDocumentation({
  version: "0.0.0-test",
  publicUrl: "http://127.0.0.1:8787",
});
const sourceText = [...new Bun.Glob("src/**/*.ts").scanSync(root)]
  .filter((name) => !name.includes(".test.") && !name.includes("/documentation/"))
  .map((name) => readFileSync(join(root, name), "utf8"))
  .join("\n");

describe("the documentation", () => {
  test("has a file for every written page and a page for every file", () => {
    const files = writtenSections.flatMap(({ slug }) =>
      readdirSync(join(root, "docs", slug)).map((name) => `${slug}/${name.replace(".md", "")}`),
    );
    expect(files.toSorted()).toEqual(
      writtenSections
        .flatMap(({ slug, pages }) => pages.map((page) => `${slug}/${page.slug}`))
        .toSorted(),
    );
  });

  test("has its guides in five groups, each guide in one of them", () => {
    const [guides] = writtenSections.filter(({ slug }) => slug === "guides");
    const groups = guides === undefined ? [] : groupsOf(guides);
    expect(groups.map(({ title }) => title)).toEqual([
      "Clients",
      "Routing",
      "Keys and money",
      "Apps",
      "Migrate",
    ]);
    const grouped = groups.flatMap(({ pages }) => pages.map(({ slug }) => slug));
    expect(grouped.toSorted()).toEqual(guides?.pages.map(({ slug }) => slug).toSorted() ?? []);
    const migrations = groups.at(-1)?.pages.map(({ slug }) => slug) ?? [];
    expect(migrations.every((slug) => slug.startsWith("from-"))).toBe(true);
  });

  test("has a first page that leads to every other, with the groups as headings", () => {
    const front = site.file("")?.text ?? "";
    const [, main = ""] = front.split("<main");
    expect(main).toContain("<h1>Switchyard documentation</h1>");
    const missing = site.pages.filter(
      ({ path }) => !path.startsWith("start/") && !main.includes(`href="/docs/${path}"`),
    );
    expect(missing.map(({ path }) => path)).toEqual([]);
    for (const title of ["Clients", "Routing", "Keys and money", "Apps", "Migrate"])
      expect(main).toContain(`<h3>${title}</h3>`);
  });

  test("has a page for each operation, which its tag's page and the navigation lead to", () => {
    const described = describedEndpoints(endpoints).filter(({ tag }) => tag !== "Pages");
    const named = new Set([...site.operations.values()].map(({ name }) => name));
    const names = described.map(
      ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
    );
    expect(names.filter((name) => !named.has(name))).toEqual([]);
    expect(site.operations.size).toBe(named.size);
    const rotation = "api/post-keys-hash-rotate";
    const page = site.file(rotation)?.text ?? "";
    expect(page).toContain('<span class="verb post">POST</span> <code>/keys/{hash}/rotate</code>');
    expect(page).toContain('<a href="/docs/api/get-keys">');
    expect(page).toContain('rel="next"');
    expect(site.file(`${rotation}.md`)?.text).toContain("`POST /keys/{hash}/rotate`");
    expect(site.file("reference/api-account")?.text).toContain('href="/docs/api/post-keys"');
  });

  test("has no broken links or anchors", () => {
    const paths = [...site.pages.map(({ path }) => path), ...site.operations.keys()];
    const anchors = new Map(
      paths.map((path) => [
        `/docs/${path}`,
        new Set(site.render(path)?.headings.map(({ id }) => id)),
      ]),
    );
    const dead = paths.flatMap((path) => {
      const links = [...(site.render(path)?.html ?? "").matchAll(/href="([^"]+)"/g)].map(
        ([, href = ""]) => href,
      );
      return links
        .filter((href) => !/^(?:https?:|mailto:)/.test(href))
        .filter((href) => {
          const [page = "", anchor] = href.split("#");
          const target = page === "" ? `/docs/${path}` : page;
          if (target === "/api/v1/openapi.json" || target === "/llms.txt") return false;
          const known = anchors.get(target);
          return known === undefined || (anchor !== undefined && !known.has(anchor));
        })
        .map((href) => `${path}: ${href}`);
    });
    expect(dead).toEqual([]);
  });

  test("names only endpoints that the gateway has", () => {
    const shapeOf = (path: string): string =>
      path
        .replace(/^\/(?:api\/)?v1(?=\/)/, "")
        .replace(/[?#].*$/, "")
        .replaceAll(/:\w+|\{\w+\}/g, "{}");
    const known = new Set(endpoints.map(({ method, path }) => `${method} ${shapeOf(path)}`));
    const named = site.pages
      .filter(({ path }) => !path.startsWith("reference/"))
      .flatMap(({ path }) =>
        [...(site.markdown(path) ?? "").matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^\s`]*)`/g)].map(
          ([, method = "", place = ""]) => ({ path, name: `${method} ${shapeOf(place)}` }),
        ),
      );
    expect(named.length).toBeGreaterThan(10);
    const unknown = named.filter(({ name }) => !known.has(name));
    expect(unknown.map(({ path, name }) => `${path}: ${name}`)).toEqual([]);
  });

  test("describes every error code, metric, header, setting, variable and operation at an anchor", () => {
    const has = (page: string, ids: readonly string[]): string[] => {
      const known = new Set(site.render(`reference/${page}`)?.headings.map(({ id }) => id));
      return ids.filter((id) => !known.has(id));
    };
    expect(has("errors", Object.keys(errorCatalog))).toEqual([]);
    expect(
      has(
        "metrics",
        metricTable().map(({ name }) => name),
      ),
    ).toEqual([]);
    const ownHeaders = [...sourceText.matchAll(/[bB]randHeader\("([A-Za-z-]+)"\)/g)].map(
      ([, name = ""]) => `x-service-${name.toLowerCase()}`,
    );
    expect(ownHeaders.length).toBeGreaterThan(20);
    expect(
      has("headers", [...ownHeaders, ...headerTexts.map(({ name }) => name.toLowerCase())]),
    ).toEqual([]);
    const configuration = site.markdown("reference/configuration") ?? "";
    const paths = settings(readFileSync(join(root, "switchyard.example.yaml"), "utf8")).map(
      ({ path }) => path,
    );
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => !configuration.includes(`\`${path}\``))).toEqual([]);
    const read = readFileSync(join(root, "src/platform/config/environment-settings.ts"), "utf8");
    const names = [...read.matchAll(/read\.\w+\("([A-Z][A-Z_]+)"/g)].map(([, name = ""]) => name);
    expect(names.filter((name) => !variables.some(([known]) => known === name))).toEqual([]);
    const reference = site.pages
      .filter(({ path }) => path.startsWith("reference/api-"))
      .map(({ path }) => site.markdown(path))
      .join("\n");
    const missing = describedEndpoints(endpoints)
      .filter(({ tag }) => tag !== "Pages")
      .filter(
        ({ method, path }) =>
          !reference.includes(`\n## ${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}\n`),
      );
    expect(missing.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  test("has Markdown for every page, an index for agents and a search entry for every section", () => {
    const index = site.file("llms.txt")?.text ?? "";
    for (const { path, title } of site.pages) {
      expect(index).toContain(`- [${title}](/docs/${path}.md)`);
      expect(site.file(`${path}.md`)?.text).toStartWith("# ");
    }
    const entries = JSON.parse(site.file("search.json")?.text ?? "[]") as { id: string }[];
    expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
    expect(entries).toContainEqual(
      expect.objectContaining({ id: "/docs/reference/errors#insufficient_balance" }),
    );
  });
});

describe("the exported documentation site", () => {
  const files = staticFiles(site);

  test("has only relative links, each to an exported file and anchor", () => {
    const dead = [...files].flatMap(([name, text]) => {
      if (!name.endsWith(".html")) return [];
      const links = [...text.matchAll(/\b(?:href|src)="([^"]+)"/g)].map(([, link = ""]) => link);
      return links
        .filter((link) => !/^(?:https?:|mailto:)/.test(link))
        .filter((link) => {
          const { pathname, hash } = new URL(link, `http://site/${name}`);
          const target = files.get(pathname.slice(1));
          if (link.startsWith("/") || target === undefined) return true;
          return hash !== "" && !target.includes(`id="${hash.slice(1)}"`);
        })
        .map((link) => `${name}: ${link}`);
    });
    expect(dead).toEqual([]);
    const places = JSON.parse(files.get("search.json") ?? "[]") as { id: string }[];
    expect(places.length).toBeGreaterThan(500);
    expect(places.filter(({ id }) => !files.has(id.split("#")[0] ?? ""))).toEqual([]);
    for (const [name, text] of files)
      if (name.endsWith(".md")) expect([name, /\]\(\/docs/.test(text)]).toEqual([name, false]);
  });

  test("is written by the docs command, but not into a folder with other files", async () => {
    const folder = temporaryDirectory();
    const written = await runCommand(["--json", "docs", "--out", join(folder, "site")]);
    expect(jsonOf(written)).toMatchObject({ files: files.size });
    expect(readFileSync(join(folder, "site", "guides", "presets.html"), "utf8")).toContain(
      'href="../site/site.css"',
    );
    expect(await runCommand(["docs", "--out", folder])).toMatchObject({ exitCode: 2 });
    await endProcesses();
  });
});

/**
 * Leaves a few of what a page has hundreds of, all written by one function: rows of a table, links
 * of the navigation, sections with their text. A check of all of them takes seconds a page.
 */
const fewOfEach = `
  for (const row of document.querySelectorAll("tbody tr:nth-child(n+5), nav li:nth-child(n+6)")) row.remove();
  const kinds = new Map();
  let isLeft = true;
  for (const element of [...document.querySelector("main").querySelectorAll("h2, h2 ~ *")]) {
    const seen = (kinds.get(element.tagName) ?? 0) + 1;
    kinds.set(element.tagName, seen);
    if (element.tagName === "H2") isLeft = seen <= 6;
    if (!isLeft && kinds.get(element.tagName) > 6) element.remove();
  }
`;

describe.skipIf(!hasChromium)(`the documentation in a browser${missingChromium}`, () => {
  let gateway: TestGateway;
  let browser: OwnWindows;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startGateway({ sandbox: true }), startChromium()]);
  });
  afterAll(async () => {
    await browser.close();
    await gateway.stop();
  });
  const newPage = async (options?: BrowserContextOptions): Promise<Page> =>
    (await browser.newContext(options)).newPage();

  test("passes axe in both themes and fits 390 pixels, without requests to other origins", async () => {
    const page = await newPage({ viewport: { width: 390, height: 844 } });
    const elsewhere: string[] = [];
    const complaints: string[] = [];
    page.on(
      "request",
      (request) =>
        request.url().startsWith(gateway.origin) ||
        request.url().startsWith("data:") ||
        elsewhere.push(request.url()),
    );
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    for (const path of [
      "",
      "/guides/routing",
      "/operate/security",
      "/reference/errors",
      "/reference/configuration",
      "/reference/api-presets",
      "/api/post-chat-completions",
    ]) {
      await page.goto(`${gateway.origin}/docs${path}`);
      expect([path, await sidewaysPixels(page)]).toEqual([path, 0]);
      await page.evaluate(fewOfEach);
      await page.evaluate("document.documentElement.dataset.theme = 'light'");
      expect([path, await axeFindings(page)]).toEqual([path, []]);
      await page.evaluate("document.documentElement.dataset.theme = 'dark'");
      expect([path, await contrastFindings(page)]).toEqual([path, []]);
    }
    expect([elsewhere, complaints]).toEqual([[], []]);
    await page.close();
  }, 600_000);

  test("answers an unknown address with the navigation in browsers, and with JSON elsewhere", async () => {
    const page = await newPage({ viewport: { width: 390, height: 844 } });
    const answer = await page.goto(`${gateway.origin}/docs/guides/budget-alerts`);
    expect(answer?.status()).toBe(404);
    await page.getByRole("heading", { name: "No such page" }).waitFor();
    await page.getByRole("main").getByRole("link", { name: "Budgets", exact: true }).click();
    await page.waitForURL(`${gateway.origin}/docs/guides/budgets`);
    await page.close();
    for (const path of ["guides/budget-alerts", "guides/budgets/alerts", "a/b/c/d"]) {
      const plain = await fetch(`${gateway.origin}/docs/${path}`);
      expect(plain.status).toBe(404);
      expect(await plain.json()).toMatchObject({ error: { code: "not_found" } });
      const shown = await fetch(plain.url, { headers: { accept: "text/html,*/*;q=0.8" } });
      expect(shown.status).toBe(404);
      expect(await shown.text()).toContain("No such page");
    }
  });

  test("sends an operation as the person who is signed in, and offers it to no other", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    const place = page.locator("#try");
    await page.goto(`${gateway.origin}/docs/api/post-chat-completions`);
    expect([await place.count(), await place.isVisible()]).toEqual([1, false]);
    const { owner } = await signedInSessions(gateway);
    await context.addCookies([{ name: "__session", value: owner(), url: gateway.origin }]);
    await page.reload();
    await page.getByRole("button", { name: "Send the request" }).click();
    await place.getByText(/^Status 200, /).waitFor();
    expect(await place.locator("pre").innerText()).toContain('"object": "chat.completion"');
    expect(await axeFindings(page)).toEqual([]);
    await page.goto(`${gateway.origin}/docs/api/get-keys`);
    await page.getByRole("button", { name: "Send the request" }).click();
    await place.getByText(/^Status 200, /).waitFor();
    // What changes something asks first.
    await page.goto(`${gateway.origin}/docs/api/post-keys`);
    await page.getByLabel("Body").fill('{"name": "Made in the manual"}');
    await page.getByRole("button", { name: "Send the request" }).click();
    expect(await place.getByText(/^Status/).count()).toBe(0);
    await page.getByRole("button", { name: "Send POST" }).click();
    await place.getByText(/^Status 200, /).waitFor();
    expect(await place.locator("pre").innerText()).toContain("Made in the manual");
    // Neither management keys nor passwords are asked for here.
    await page.goto(`${gateway.origin}/docs/api/post-api-auth-sign-in-email`);
    expect(await place.count()).toBe(0);
    expect(problems).toEqual([]);
    await context.close();
  }, 600_000);

  test("can search when it is served below another server's root", async () => {
    const files = staticFiles(site);
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const name = new URL(request.url).pathname.replace("/manuals/gateway/", "") || "index.html";
        const text = files.get(name);
        const type = Bun.file(name).type;
        return text === undefined
          ? new Response("none", { status: 404 })
          : new Response(text, { headers: { "content-type": type } });
      },
    });
    const page = await newPage();
    await page.goto(`http://127.0.0.1:${server.port}/manuals/gateway/guides/presets.html`);
    await page.fill("#search", "insufficient_balance");
    await page.click("#results a:first-child");
    await page.waitForURL("**/manuals/gateway/reference/errors.html#insufficient_balance");
    await page.close();
    await server.stop(true);
  });

  test("is the target of every error's doc_url, in the format of each client", async () => {
    for (const path of ["/chat/completions", "/messages", "/responses", "/embeddings", "/keys"]) {
      const answer = await fetch(`${gateway.origin}/v1${path}`, { method: "POST", body: "{}" });
      const { error } = (await answer.json()) as {
        error: { code: string; metadata: { doc_url: string } };
      };
      const { pathname, hash } = new URL(error.metadata.doc_url);
      const page = await (await fetch(`${gateway.origin}${pathname}`)).text();
      expect([path, hash, page.includes(`<h2 id="${error.code}">`)]).toEqual([
        path,
        `#${error.code}`,
        true,
      ]);
    }
  });

  test("finds every error code, header, setting and metric by name", async () => {
    const page = await newPage();
    await page.goto(`${gateway.origin}/docs`);
    await page.fill("#search", "insufficient_balance");
    await page.click("#results a:first-child");
    await page.waitForURL(`${gateway.origin}/docs/reference/errors#insufficient_balance`);
    const paths = settings(readFileSync(join(root, "switchyard.example.yaml"), "utf8")).map(
      ({ path }) => path.split(/[.[\]]+/).at(-1) ?? "",
    );
    const wanted = [
      ...Object.keys(errorCatalog),
      ...headerTexts.map(({ name }) => name),
      ...metricTable().map(({ name }) => name),
      ...paths,
    ];
    await page.fill("#search", "x");
    await page.waitForSelector("#results:not([hidden])");
    const missed = await page.evaluate(
      async (words: string[]) => {
        const engine = await (
          globalThis as unknown as { searchEngine(): Promise<{ search(word: string): unknown[] }> }
        ).searchEngine();
        return words.filter((word) => engine.search(word).length === 0);
      },
      wanted.filter((word) => word !== "<id>"),
    );
    expect(missed).toEqual([]);
    await page.close();
  });
});
