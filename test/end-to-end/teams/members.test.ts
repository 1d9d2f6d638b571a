import { afterAll, beforeAll, expect, test } from "bun:test";
import { startOperatorScene, type OperatorScene } from "../admin/operator-scene.ts";
import { at, listAt, textAt } from "../api/at.ts";
import type { Browser } from "../api/people-browser.ts";

let scene: OperatorScene;
let inside: Record<string, string> = {};
beforeAll(async () => {
  scene = await startOperatorScene(undefined);
  const organization = await scene.owner.json("GET", `/organizations/${scene.organizationId}`);
  inside = { "x-service-workspace": textAt(organization, "workspace_id") };
  scene.owner.headers = inside;
}, 240_000);
afterAll(() => scene.stop());

const person = async (name: string): Promise<{ browser: Browser; id: string; email: string }> => {
  const found = await scene.person(name);
  found.browser.headers = inside;
  return found;
};
const teamNamed = async (name: string): Promise<string> =>
  textAt(await scene.owner.json("POST", "/teams", { name }), "id");
const teamOf = async (browser: Browser, body: object = {}): Promise<unknown> =>
  at(await browser.json("POST", "/keys", { name: "k", ...body }), "data.team_id");

test("people of the organisation join and leave; others cannot be added", async () => {
  const id = await teamNamed("Joined");
  const [ada, ben] = [await person("ada"), await person("ben")];
  const added = await scene.owner.json("POST", `/teams/${id}/members`, { email: ada.email });
  expect(added).toMatchObject({ object: "team_member", team_id: id, user_id: ada.id });
  await scene.owner.json("POST", `/teams/${id}/members`, { user_id: ben.id });
  await scene.owner.json("POST", `/teams/${id}/members`, { user_id: ben.id });
  const ids = async (): Promise<unknown[]> =>
    listAt(await scene.owner.json("GET", `/teams/${id}/members`), "data").map((each) =>
      at(each, "user_id"),
    );
  expect(await ids()).toEqual([ada.id, ben.id]);
  expect(at(await ben.browser.json("GET", `/teams/${id}`), "members")).toBe(2);
  const add = (body: object) => scene.owner.api("POST", `/teams/${id}/members`, body);
  const stranger = await add({ email: "stranger@example.com" });
  expect([stranger.status, at(await stranger.json(), "error.param")]).toEqual([400, "email"]);
  expect((await add({})).status).toBe(400);
  // Members see teams and change none.
  expect((await ada.browser.api("POST", "/teams", { name: "Mine" })).status).toBe(403);
  expect((await ada.browser.api("POST", `/teams/${id}/members`, { user_id: ada.id })).status).toBe(
    403,
  );
  await scene.owner.json("DELETE", `/teams/${id}/members/${ben.id}`);
  expect((await scene.owner.api("DELETE", `/teams/${id}/members/${ben.id}`)).status).toBe(404);
  expect(await ids()).toEqual([ada.id]);
  // Who leaves the organisation leaves its teams, also for the time when they return.
  await scene.owner.json("DELETE", `/organizations/${scene.organizationId}/members/${ada.id}`);
  expect(await ids()).toEqual([]);
  expect(at(await scene.owner.json("GET", `/teams/${id}`), "members")).toBe(0);
});

test("a member of a team creates keys in their teams alone", async () => {
  const [first, second, foreign] = [
    await teamNamed("First"),
    await teamNamed("Second"),
    await teamNamed("Foreign"),
  ];
  const { browser, id } = await person("carla");
  expect(await teamOf(browser)).toBeNull();
  await scene.owner.json("POST", `/teams/${first}/members`, { user_id: id });
  await scene.owner.json("POST", `/teams/${second}/members`, { user_id: id });
  expect(await teamOf(browser)).toBe(first);
  expect(await teamOf(browser, { team_id: second })).toBe(second);
  for (const teamId of [foreign, null]) {
    const refused = await browser.api("POST", "/keys", { name: "k", team_id: teamId });
    expect(refused.status).toBe(403);
    expect(at(await refused.json(), "error.metadata.team_ids")).toEqual([first, second]);
  }
  const run = await browser.api("POST", "/runs", { name: "r", limit: 1 });
  expect([run.status, at(await run.json(), "error.metadata.team_ids")]).toEqual([
    403,
    [first, second],
  ]);
  // Nor does the secret of another key, or of its child, become theirs.
  const others = await scene.owner.json("POST", "/keys", { name: "k", team_id: foreign });
  const apart = await scene.owner.json("POST", "/keys", { name: "k" });
  for (const made of [others, apart])
    for (const [path, body] of [
      ["rotate", undefined],
      ["children", { name: "c" }],
    ] as const) {
      const asked = `/keys/${textAt(made, "data.hash")}/${path}`;
      expect((await browser.api("POST", asked, body)).status).toBe(403);
    }
  const mine = await scene.owner.json("POST", "/keys", { name: "k", team_id: second });
  const rotated = await browser.json("POST", `/keys/${textAt(mine, "data.hash")}/rotate`);
  expect(at(rotated, "data.team_id")).toBe(second);
  // A key for a customer is no way around the team.
  await browser.json("POST", "/customers", { external_id: "shop" });
  const sold = await browser.json("POST", "/customers/shop/keys", { name: "k" });
  expect(at(sold, "data.team_id")).toBe(first);
  const { hash } = at(sold, "data") as { hash: string };
  expect((await browser.api("PATCH", `/keys/${hash}`, { team_id: second })).status).toBe(403);
  // Owners and admins are bound to none.
  await scene.owner.json("PATCH", `/organizations/${scene.organizationId}/members/${id}`, {
    role: "admin",
  });
  expect(await teamOf(browser)).toBeNull();
  expect(await teamOf(browser, { team_id: foreign })).toBe(foreign);
});
