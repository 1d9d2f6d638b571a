import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { strFromU8, unzipSync } from "fflate";
import { gitSource } from "../../../src/mcp/hub/git/skill-folder.ts";
import { at, textAt } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "../api/two-workspaces.ts";
import { startGitServer, type GitServer } from "./git-server.ts";
import { json, skillDocument } from "./hub-scene.ts";

const icon = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]);
const skill = {
  "SKILL.md": skillDocument("pdf"),
  "forms.txt": "# Forms\n",
  "scripts/fill.py": "print('filled')\n",
  "scripts/parts/page.py": "pass\n",
  "references/spec.txt": "spec\n",
  "assets/icon.png": icon,
  "other/left-out.txt": "not of a skill\n",
  ".hidden": "not shown\n",
};
const kept = [
  "assets/icon.png",
  "forms.txt",
  "references/spec.txt",
  "scripts/fill.py",
  "scripts/parts/page.py",
];

const inFolder = (folder: string, files: Record<string, string | Uint8Array>) =>
  Object.fromEntries(Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]));

let git: GitServer;
let commit: string;
beforeAll(async () => {
  git = await startGitServer();
  commit = await git.create("skills", {
    "README.md": "Skills.\n",
    ...inFolder("documents/pdf", skill),
    ...inFolder("documents/bare", { "SKILL.md": skillDocument("bare") }),
    "documents/none/README.md": "No skill.\n",
  });
  await git.git("skills", ["tag", "-a", "v1", "-m", "First", "HEAD"]);
  await git.git("skills", ["branch", "feature/new", "HEAD"]);
  await git.create("alone", { "SKILL.md": skillDocument("alone"), "scripts/a.sh": "echo a\n" });
  await git.create("plain", skill);
  await git.git("plain", ["config", "uploadpack.allowFilter", "false"]);
  await git.create("hashed", { "SKILL.md": skillDocument("hashed") }, { format: "sha256" });
}, 240_000);
afterAll(async () => git.stop());

/** Points a branch of a repository at a tree that git itself would not write. */
async function branchWith(
  name: string,
  branch: string,
  entries: readonly [mode: string, name: string, text: string | Uint8Array][],
): Promise<void> {
  const parts: Buffer[] = [];
  for (const [mode, path, text] of entries) {
    const type = mode === "40000" ? "tree" : "blob";
    const id = await git.git(
      name,
      ["hash-object", "-t", type, "-w", "--stdin", "--literally"],
      text,
    );
    parts.push(Buffer.from(`${mode} ${path}\0`), Buffer.from(id, "hex"));
  }
  const tree = await git.git(
    name,
    ["hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
    Buffer.concat(parts),
  );
  const made = await git.git(name, ["commit-tree", tree, "-m", branch]);
  await git.git(name, ["update-ref", `refs/heads/${branch}`, made]);
}

describe.each(engines)("importing over Git on %s", (_engine, freshUrl) => {
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, { hubImportNetworks: ["127.0.0.0/8"] });
    await json(workspaces.own("POST", "/hubs", { name: "Mine", slug: "mine" }));
  }, 240_000);
  afterAll(async () => workspaces.stop());

  const importing = (reference: string): Promise<Response> =>
    workspaces.own("POST", "/hubs/mine/import", { source_ref: reference });

  async function unpacked(path: string): Promise<Record<string, Uint8Array>> {
    const response = await workspaces.own("GET", path);
    expect(response.status).toBe(200);
    return unzipSync(new Uint8Array(await response.arrayBuffer()));
  }

  test("imports the folder's files, keeps them in versions and forks, and exports them", async () => {
    const reference = git.url("skills.git#v1:documents/pdf");
    const imported = await json(importing(reference));
    const id = textAt(imported, "id");
    expect(imported).toMatchObject({
      name: "pdf",
      source_ref: reference,
      body: skillDocument("pdf"),
      files: kept.map((path) => ({ path, bytes: skill[path as keyof typeof skill].length })),
    });

    const archive = await unpacked(`/skills/${id}/export`);
    expect(Object.keys(archive).sort()).toEqual(
      ["SKILL.md", ...kept].map((path) => `pdf/${path}`).sort(),
    );
    expect(archive["pdf/assets/icon.png"]).toEqual(icon);
    expect(strFromU8(archive["pdf/scripts/fill.py"] ?? icon)).toBe(skill["scripts/fill.py"]);

    await json(
      workspaces.own("PATCH", `/skills/${id}`, { body: skillDocument("pdf", "Better now.") }),
    );
    expect(at(await json(workspaces.own("GET", `/skills/${id}`)), "version")).toBe(2);
    expect(Object.keys(await unpacked(`/skills/${id}/export`))).toHaveLength(kept.length + 1);

    const fork = await json(workspaces.own("POST", `/skills/${id}/fork`));
    const copy = await json(importing("mine/pdf"));
    await json(workspaces.own("DELETE", `/skills/${id}`));
    for (const each of [fork, copy])
      expect(
        Object.keys(await unpacked(`/skills/${textAt(each, "id")}/export`)).some((path) =>
          path.endsWith("/scripts/parts/page.py"),
        ),
      ).toBe(true);
    expect(Object.keys(await unpacked("/hubs/mine/export"))).toContain(
      `mine/skills/${textAt(copy, "slug")}/assets/icon.png`,
    );
  });

  test("reads the default branch, a branch with a slash, a tag, a commit and a page of a Git host", async () => {
    const references = [
      "alone.git",
      "skills.git#feature/new:documents/bare",
      "skills.git#v1:documents/bare/SKILL.md",
      `skills.git#${commit}:documents/bare`,
      "skills/-/tree/main/documents/bare",
      "skills/src/branch/main/documents/bare",
      "hashed.git",
    ].map((path) => git.url(path));
    for (const reference of [...references, `git+${git.url("alone.git")}`])
      expect([reference, (await importing(reference)).status]).toEqual([reference, 200]);
  });

  test("fetches everything from a server without partial clone filters", async () => {
    const imported = await json(importing(git.url("plain.git")));
    expect(at(imported, "files")).toHaveLength(kept.length);
  });

  test.each([
    ["nothing.git", "is no public Git repository"],
    ["skills.git#gone:documents/pdf", "has no such branch or tag"],
    ["skills.git#main:documents/gone", "has no such folder"],
    ["skills.git#main:documents/none", "has no SKILL.md"],
  ])("refuses %s", async (path, problem) => {
    const error = await errorOf(await importing(git.url(path)));
    expect(error).toMatchObject({ status: 400, param: "source_ref" });
    expect(error.message).toContain(problem);
  });

  const document = ["100644", "SKILL.md", skillDocument("hostile")] as const;
  test.each<[string, [mode: string, name: string, text: string | Uint8Array][], string]>([
    ["links", [["120000", "link", "/etc/passwd"]], "symbolic link"],
    ["parents", [["100644", "..", "x"]], "no SKILL.md|not allowed"],
    ["slashes", [["100644", "a/../../b", "x"]], "file name"],
    ["backslashes", [["100644", "a\\b", "x"]], "file name"],
    ["controls", [["100644", "a\u0007b", "x"]], "file name"],
    [
      "twice",
      [
        ["100644", "a.txt", "x"],
        ["100644", "A.txt", "x"],
      ],
      "one file name twice",
    ],
    ["dotted", [["100644", "dotted.", "x"]], "file name"],
    ["large", [["100644", "large.bin", new Uint8Array(600_000)]], "file of more than"],
    [
      "heavy",
      Array.from({ length: 5 }, (_, index): [string, string, Uint8Array] => [
        "100644",
        `part-${index}`,
        new Uint8Array(450_000).fill(index),
      ]),
      "skill of more than",
    ],
    [
      "many",
      Array.from({ length: 120 }, (_, index): [string, string, string] => [
        "100644",
        `file-${index}`,
        "x",
      ]),
      "more than 100 files",
    ],
    ["bomb", [["100644", "bomb.bin", new Uint8Array(30_000_000)]], "too large"],
  ])("refuses a skill with %s", async (branch, entries, problem) => {
    await branchWith("alone", branch, [[...document], ...entries]);
    const response = await importing(git.url(`alone.git#${branch}:`));
    // A file called `..` is hidden, as all that begin with a dot are: it is left out.
    if (branch === "parents") {
      expect(at(await json(Promise.resolve(response)), "files")).toEqual([]);
      return;
    }
    const error = await errorOf(response);
    expect(error.status).toBe(400);
    expect(error.message).toMatch(new RegExp(problem));
  });
});

describe("importing over Git", () => {
  test("sends no request to a private address, nor to one behind a redirect", async () => {
    const guarded = await startTwoWorkspaces(async () => undefined);
    const before = git.asked.length;
    try {
      await json(guarded.own("POST", "/hubs", { name: "Mine", slug: "mine" }));
      const error = await errorOf(
        await guarded.own("POST", "/hubs/mine/import", { source_ref: git.url("alone.git") }),
      );
      expect(error).toMatchObject({ status: 400, param: "source_ref" });
      expect(git.asked).toHaveLength(before);
    } finally {
      await guarded.stop();
    }
  });

  test("refuses responses that are not Git's, without quoting them", async () => {
    const packet = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
    const capabilities = `${packet("version 2\n")}${packet("fetch=shallow\n")}0000`;
    const line = packet("packfile\n");
    const answers: Record<string, string> = {
      "/page.git": "<html>the intranet's secret</html>",
      "/old.git": `${packet("0123 refs/heads/secret\n")}0000`,
      "/long.git": "x".repeat(100_000),
      "/cut.git": capabilities,
      "/failing.git": capabilities,
      "/packless.git": capabilities,
    };
    const packs: Record<string, string> = {
      "/cut.git": `${line}ffff\u0001secret`,
      "/failing.git": `${line}${packet("\u0003the intranet's secret")}`,
      "/packless.git": packet("the intranet's secret"),
    };
    const odd = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        const { pathname } = new URL(request.url);
        const name = pathname.replace(/\/(info\/refs|git-upload-pack)$/, "");
        if (name === "/inward.git")
          return Response.redirect("http://169.254.169.254/x.git/info/refs", 301);
        if (name === "/elsewhere.git") return Response.redirect("http://127.0.0.1/secret", 301);
        return new Response(request.method === "GET" ? answers[name] : packs[name]);
      },
    });
    const workspaces = await startTwoWorkspaces(async () => undefined, {
      hubImportNetworks: ["127.0.0.0/8"],
    });
    try {
      await json(workspaces.own("POST", "/hubs", { name: "Mine", slug: "mine" }));
      for (const path of [...Object.keys(answers), "/inward.git", "/elsewhere.git"]) {
        const source_ref = `http://127.0.0.1:${odd.port}${path}#${"a".repeat(40)}:`;
        const error = await errorOf(
          await workspaces.own("POST", "/hubs/mine/import", { source_ref }),
        );
        expect([path, error.status]).toEqual([path, 400]);
        expect(error.message).not.toContain("secret");
      }
    } finally {
      await workspaces.stop();
      await odd.stop(true);
    }
  });

  test.each([
    ["https://github.com/acme/skills", "https://github.com/acme/skills.git", undefined, ""],
    [
      "https://github.com/acme/skills/tree/v1/a/b",
      "https://github.com/acme/skills.git",
      "v1",
      "a/b",
    ],
    [
      "https://gitlab.com/group/sub/skills/-/blob/main/pdf/SKILL.md",
      "https://gitlab.com/group/sub/skills.git",
      "main",
      "pdf",
    ],
    ["https://git.acme.dev/x.git#a/b:c/d", "https://git.acme.dev/x.git", "a/b", "c/d"],
    ["git+https://git.acme.dev/x", "https://git.acme.dev/x", undefined, ""],
  ])("%s names a folder of a repository", (address, repository, ref, folder) => {
    expect(gitSource(address)).toEqual({
      repository,
      folder,
      ...(ref === undefined ? {} : { ref }),
    });
  });

  test.each([
    "https://example.com/a/SKILL.md",
    "https://github.com/acme/skills/blob/main/README.md",
    "ftp://example.com/a.git",
    "mine/pdf",
  ])("%s does not name a repository folder", (address) => {
    expect(gitSource(address)).toBeUndefined();
  });
});
