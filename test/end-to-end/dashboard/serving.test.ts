import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { startPeopled, type PeopledGateway } from "../api/people-browser.ts";

const root = resolve(import.meta.dirname, "../../..");
const folder = join(root, "dashboard", "dist");

let people: PeopledGateway;
beforeAll(async () => {
  const built = spawnSync(process.execPath, [join(root, "scripts", "build-dashboard.ts")], {
    encoding: "utf8",
  });
  if (built.status !== 0) throw new Error(`the dashboard could not be built: ${built.stderr}`);
  people = await startPeopled(undefined, { dashboard: { folder, buildScript: undefined } });
}, 240_000);
afterAll(() => people.stop());

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(people.gateway().origin + path, { headers });

test("the dashboard page has a strict content security policy and names existing files", async () => {
  const response = await get("/dashboard/keys");
  const page = await response.text();
  expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-cache"]);
  const policy = response.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  const named = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(
    ([, path = ""]) => path,
  );
  expect(named.length).toBeGreaterThanOrEqual(3);
  for (const path of named) expect([path, (await get(path)).status]).toEqual([path, 200]);
});

test("dashboard files are compressed, typed and cached as immutable when their name has a hash", async () => {
  const [, script = ""] =
    /src="(\/assets\/main-[^"]+)"/.exec(await (await get("/dashboard/keys")).text()) ?? [];
  const response = await fetch(people.gateway().origin + script, {
    headers: { "accept-encoding": "gzip" },
    decompress: false,
  });
  expect(response.headers.get("content-encoding")).toBe("gzip");
  expect(response.headers.get("content-type")).toStartWith("text/javascript");
  expect(response.headers.get("cache-control")).toContain("immutable");
  const bytes = (await response.arrayBuffer()).byteLength;
  // The budget of the first load.
  expect(bytes).toBeLessThan(130_000);
  expect((await get("/assets/theme.js")).headers.get("cache-control")).not.toContain("immutable");
  expect((await get("/fonts/inter.woff2")).headers.get("content-type")).toBe("font/woff2");
});

test.each(["/assets/none.js", "/assets/..%2findex.html", "/fonts/none.woff2"])(
  "%s returns 404",
  async (path) => {
    expect((await get(path)).status).toBe(404);
  },
);

test("the start page redirects signed-in people to the dashboard, and others to sign-in", async () => {
  const start = await people.owner.ask("GET", "/");
  expect([start.status, start.headers.get("location")]).toEqual([303, "/dashboard"]);
  expect(await (await people.owner.ask("GET", "/dashboard")).text()).toContain('id="root"');
  const stranger = await people.stranger().ask("GET", "/");
  expect([stranger.status, stranger.headers.get("location")]).toEqual([303, "/sign-in"]);
});

const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

test.each([
  ["/overview", "/dashboard"],
  ["/dashboard/", "/dashboard"],
  ["/overview?days=7", "/dashboard?days=7"],
  ["/playground", "/dashboard/playground"],
  ["/activity?status=failed&id=gen_1", "/dashboard/activity?status=failed&id=gen_1"],
  ["/keys/", "/dashboard/keys"],
  ["/models/acme/large", "/dashboard/models/acme/large"],
])("a browser that opens %s at the root is redirected to %s", async (path, screen) => {
  const answer = await fetch(people.gateway().origin + path, {
    redirect: "manual",
    headers: { accept: browserAccepts },
  });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, screen]);
});

test.each([
  ["GET", "/activity", { accept: "application/json" }],
  ["GET", "/activity", {}],
  ["POST", "/activity", { accept: "text/html" }],
  ["GET", "/activity", { accept: "text/html", authorization: "Bearer x" }],
  ["GET", "/activities", { accept: "application/json" }],
])("%s %s with %j is not redirected and returns 404", async (method, path, headers) => {
  const answer = await fetch(people.gateway().origin + path, {
    method,
    redirect: "manual",
    headers: headers as Record<string, string>,
  });
  expect(answer.status).toBe(404);
  if (!("accept" in headers) || headers.accept !== "text/html")
    expect(answer.headers.get("content-type")).toStartWith("application/json");
});

test("a gateway without a dashboard returns 404 for its pages", async () => {
  const plain: TestGateway = await startGateway();
  expect((await fetch(`${plain.origin}/dashboard/keys`)).status).toBe(404);
  expect(
    (
      await fetch(`${plain.origin}/keys`, {
        redirect: "manual",
        headers: { accept: browserAccepts },
      })
    ).status,
  ).toBe(404);
  await plain.stop();
});

test("while the dashboard is being built its page returns 503 and reloads itself", async () => {
  const empty = mkdtempSync(join(tmpdir(), "switchyard-dashboard-"));
  const plain: TestGateway = await startGateway({
    dashboard: { folder: empty, buildScript: undefined },
  });
  const response = await fetch(`${plain.origin}/dashboard/keys`);
  expect([response.status, response.headers.get("refresh")]).toEqual([503, "1"]);
  await plain.stop();
  rmSync(empty, { recursive: true });
});
