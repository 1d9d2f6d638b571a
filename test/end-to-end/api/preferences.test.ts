import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { at, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startPeopled, type PeopledGateway } from "./people-browser.ts";
import { engines } from "./two-workspaces.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

describe.each(engines)("preferences on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  beforeAll(async () => {
    people = await startPeopled(await freshUrl());
  }, 240_000);
  afterAll(() => people.stop());

  const preferences = async (): Promise<unknown> =>
    at(await people.owner.json("GET", "/session/preferences"), "preferences");
  const change = (body: unknown): Promise<unknown> =>
    people.owner.json("PATCH", "/session/preferences", body);

  test("are stored by name, changed individually and removed with null", async () => {
    expect(await people.owner.json("GET", "/session/preferences")).toEqual({
      object: "preferences",
      preferences: {},
    });
    await change({
      theme: "dark",
      time_zone: "Europe/Vienna",
      "overview.dismissed": ["budget", 1, true, { deep: null }],
    });
    const answer = await change({ theme: "light", time_zone: null });
    const kept = { theme: "light", "overview.dismissed": ["budget", 1, true, { deep: null }] };
    expect(answer).toEqual({ object: "preferences", preferences: kept });
    expect(await preferences()).toEqual(kept);
  });

  test("that are changed in parallel are all kept", async () => {
    await Promise.all(
      Array.from({ length: 10 }, (_unused, index) => change({ [`page${index}`]: index })),
    );
    expect(await preferences()).toMatchObject(
      Object.fromEntries(Array.from({ length: 10 }, (_unused, index) => [`page${index}`, index])),
    );
  });

  test("belong to one person and are deleted with the account", async () => {
    const organization = textAt(
      await people.owner.json("POST", "/organizations", { name: "Acme" }),
      "id",
    );
    const guest = await people.invited(organization, {
      email: "guest@example.com",
      role: "member",
    });
    expect(await guest.json("GET", "/session/preferences")).toMatchObject({ preferences: {} });
    await guest.json("PATCH", "/session/preferences", { theme: "dark" });
    expect(at(await preferences(), "theme")).not.toBe("dark");
    const { database } = people.gateway().app.storage;
    const rows = async (): Promise<number> =>
      (
        await withTables<{ user_preferences: { value: string } }>(database)
          .selectFrom("user_preferences")
          .select("value")
          .where("value", "=", '"dark"')
          .execute()
      ).length;
    expect(await rows()).toBe(1);
    await guest.json("DELETE", "/session/user", { password: "password of guest@example.com" });
    expect(await rows()).toBe(0);
  });

  test.each([
    [{ "Not a name": 1 }, "Not a name"],
    [{ theme: "x".repeat(2_100) }, "theme"],
    [{ zero: "a\u0000b" }, "zero"],
  ])("invalid ones return 400 that names the field: %#", async (body, param) => {
    const refused = await errorOf(await people.owner.api("PATCH", "/session/preferences", body));
    expect([refused.status, refused.code]).toEqual([400, "bad_request"]);
    expect(refused.message).toMatch(new RegExp(`^${param}: (?:is no name|must)`));
  });

  test("are limited to a hundred, and a change beyond that is rejected as a whole", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 101 }, (_unused, index) => [`many${index}`, index]),
    );
    expect((await people.owner.api("PATCH", "/session/preferences", many)).status).toBe(400);
    expect(await preferences()).not.toHaveProperty("many0");
  });
});
