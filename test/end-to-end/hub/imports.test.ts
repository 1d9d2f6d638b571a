import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { documentUrl } from "../../../src/mcp/hub/skill-document.ts";
import { at, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";
import { expectHidden, json, skillDocument } from "./hub-scene.ts";

let asked: string[] = [];
const answers: Record<string, () => Response> = {
  "/SKILL.md": () => new Response(skillDocument("fetched")),
  "/moved": () => new Response(null, { status: 302, headers: { location: "/SKILL.md" } }),
  "/inward": () =>
    new Response(null, {
      status: 302,
      headers: { location: "http://169.254.169.254/latest/meta-data" },
    }),
  "/to-file": () =>
    new Response(null, { status: 302, headers: { location: "file:///etc/passwd" } }),
  "/round": () => new Response(null, { status: 302, headers: { location: "/round" } }),
  "/huge": () => new Response("x".repeat(400_001)),
  "/bytes": () => new Response(new Uint8Array([0xff, 0xfe, 0x00])),
  "/zero": () => new Response(`${skillDocument("zero")}\0`),
  "/page": () => new Response("<html>the intranet's secret</html>"),
  "/gone": () => new Response("the intranet's secret", { status: 404 }),
};

let source: ReturnType<typeof Bun.serve>;
let workspaces: TwoWorkspaces;
let guarded: TwoWorkspaces;
beforeAll(async () => {
  source = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return answers[pathname]?.() ?? new Response("nothing", { status: 404 });
    },
  });
  workspaces = await startTwoWorkspaces(async () => undefined, {
    hubImportNetworks: ["127.0.0.0/8"],
  });
  guarded = await startTwoWorkspaces(async () => undefined);
  for (const { own } of [workspaces, guarded])
    await json(own("POST", "/hubs", { name: "Mine", slug: "mine" }));
}, 240_000);
beforeEach(() => {
  asked = [];
});
afterAll(async () => {
  await source.stop(true);
  await workspaces.stop();
  await guarded.stop();
});

const importing = (from: TwoWorkspaces, reference: string): Promise<Response> =>
  from.own("POST", "/hubs/mine/import", { source_ref: reference });
const url = (path: string): string => `http://127.0.0.1:${source.port}${path}`;

describe("importing a skill", () => {
  test("stores the document and its source", async () => {
    expect(await json(importing(workspaces, url("/SKILL.md")))).toMatchObject({
      object: "skill",
      name: "fetched",
      hub: "mine",
      source_ref: url("/SKILL.md"),
      body: skillDocument("fetched"),
    });
  });

  test("follows a redirect to an allowed address", async () => {
    expect(await json(importing(workspaces, url("/moved")))).toMatchObject({ name: "fetched" });
    expect(asked).toEqual(["/moved", "/SKILL.md"]);
  });

  const refused = ["/inward", "/to-file", "/round", "/huge", "/bytes", "/zero", "/page", "/gone"];
  test.each(refused)("refuses %s, without quoting it", async (path) => {
    const error = await errorOf(await importing(workspaces, url(path)));
    expect(error.status).toBe(400);
    expect(error.message).not.toContain("secret");
  });

  test.each([
    "http://127.0.0.1:1/SKILL.md",
    "https://localhost/SKILL.md",
    "https://[::1]/SKILL.md",
    "https://169.254.169.254/latest",
    "https://10.0.0.1/x",
    "file:///etc/passwd",
    "ftp://example.com/x",
    "https://user:pass@example.com/x",
    "https://0x7f000001/x",
    "git@github.com:a/b.git",
    "nothing",
  ])("refuses %s", async (reference) => {
    expect(await errorOf(await importing(guarded, reference))).toMatchObject({
      status: 400,
      param: "source_ref",
    });
  });

  test("sends no request to a refused address", async () => {
    await importing(guarded, url("/SKILL.md"));
    expect(asked).toEqual([]);
  });

  test("copies an item of a hub that the caller can see, and no other", async () => {
    const { own, stranger } = workspaces;
    await json(stranger("POST", "/hubs", { name: "Theirs", slug: "theirs" }));
    await json(stranger("POST", "/skills", { body: skillDocument("copied"), hub: "theirs" }));
    expect((await own("POST", "/hubs/mine/import", { source_ref: "theirs/copied" })).status).toBe(
      404,
    );
    await json(stranger("PATCH", "/hubs/theirs", { visibility: "public" }));
    const copy = await json(
      own("POST", "/hubs/mine/import", { source_ref: "/hubs/theirs/items/copied" }),
    );
    expect(copy).toMatchObject({
      name: "copied",
      hub: "mine",
      source_ref: "/hubs/theirs/items/copied",
    });
    await expectHidden(stranger, `/skills/${textAt(copy, "id")}`);
    expect(at(await json(stranger("GET", "/hubs/theirs")), "item_count")).toBe(1);
  });
});

test.each([
  ["https://github.com/acme/skills", "https://raw.githubusercontent.com/acme/skills/HEAD/SKILL.md"],
  [
    "https://github.com/acme/skills.git",
    "https://raw.githubusercontent.com/acme/skills/HEAD/SKILL.md",
  ],
  [
    "https://github.com/acme/skills/tree/main/pdf/",
    "https://raw.githubusercontent.com/acme/skills/main/pdf/SKILL.md",
  ],
  [
    "https://github.com/acme/skills/blob/v1.2/pdf/SKILL.md",
    "https://raw.githubusercontent.com/acme/skills/v1.2/pdf/SKILL.md",
  ],
  [
    "https://gitlab.com/acme/skills/-/tree/main/pdf",
    "https://gitlab.com/acme/skills/-/raw/main/pdf/SKILL.md",
  ],
  [
    "https://bitbucket.org/acme/skills/src/main/pdf",
    "https://bitbucket.org/acme/skills/raw/main/pdf/SKILL.md",
  ],
  [
    "https://codeberg.org/acme/skills/src/branch/main/pdf",
    "https://codeberg.org/acme/skills/raw/main/pdf/SKILL.md",
  ],
  ["https://example.com/a/SKILL.md?x=1", "https://example.com/a/SKILL.md?x=1"],
])("%s is fetched at %s", (reference, expected) => {
  expect(documentUrl(reference)).toBe(expected);
});
