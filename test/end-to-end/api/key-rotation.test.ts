import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hourMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { engines, startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

interface Made {
  secret: string;
  hash: string;
}

describe.each(engines)("key rotations with a grace period on %s", (_, freshUrl) => {
  const clock = new FakeClock();
  let workspaces: TwoWorkspaces;
  beforeAll(async () => {
    workspaces = await startTwoWorkspaces(freshUrl, {}, { clock });
  }, 240_000);
  afterAll(() => workspaces.stop());

  const made = (answer: unknown): Made => ({
    secret: textAt(answer, "key"),
    hash: textAt(answer, "data.hash"),
  });
  const make = async (): Promise<Made> =>
    made(await (await workspaces.own("POST", "/keys", { name: "rotated" })).json());
  const rotate = (key: Made, body?: object): Promise<Response> =>
    workspaces.own("POST", `/keys/${key.hash}/rotate`, body);
  const status = async ({ secret }: Pick<Made, "secret">): Promise<number> =>
    (await workspaces.as(secret)("GET", "/key")).status;

  test("accept the old secret until the period ends, across a restart", async () => {
    const old = await make();
    const answer: unknown = await (await rotate(old, { grace_seconds: 3_600 })).json();
    const fresh = made(answer);
    expect(textAt(answer, "previous_valid_until")).toBe(
      new Date(clock.nowMs() + hourMs).toISOString(),
    );
    expect([await status(old), await status(fresh)]).toEqual([200, 200]);
    const own: unknown = await (await workspaces.as(old.secret)("GET", "/key")).json();
    expect(at(own, "data.expires_at") ?? at(own, "expires_at")).toBe(
      textAt(answer, "previous_valid_until"),
    );
    // Its path is the new one from now on.
    expect((await workspaces.own("GET", `/keys/${old.hash}`)).status).toBe(404);
    expect(
      at(await (await workspaces.own("GET", `/keys/${fresh.hash}`)).json(), "expires_at"),
    ).toBeNull();
    await workspaces.restart();
    clock.advance(hourMs - 1);
    expect([await status(old), await status(fresh)]).toEqual([200, 200]);
    clock.advance(1);
    expect([await status(old), await status(fresh)]).toEqual([401, 200]);
  });

  test("invalidate the secret before the previous one, or all old secrets without a grace period", async () => {
    const first = await make();
    const second = made(await (await rotate(first, { grace_seconds: 60 })).json());
    const third = made(await (await rotate(second, { grace_seconds: 60 })).json());
    expect([await status(first), await status(second), await status(third)]).toEqual([
      401, 200, 200,
    ]);
    const answer: unknown = await (await rotate(third)).json();
    expect(Object.keys(Object(answer))).toEqual(["key", "data"]);
    expect([await status(second), await status(third), await status(made(answer))]).toEqual([
      401, 401, 200,
    ]);
  });

  test("disabling or deleting the key invalidates both secrets, and children continue under the new one", async () => {
    const old = await make();
    const child: unknown = await (
      await workspaces.as(old.secret)("POST", "/key/children", { name: "child" })
    ).json();
    const fresh = made(await (await rotate(old, { grace_seconds: 60 })).json());
    expect(await status({ secret: textAt(child, "key") })).toBe(200);
    await workspaces.own("PATCH", `/keys/${fresh.hash}`, { disabled: true });
    expect([await status(old), await status(fresh)]).toEqual([401, 401]);
    await workspaces.own("PATCH", `/keys/${fresh.hash}`, { disabled: false });
    expect([await status(old), await status(fresh)]).toEqual([200, 200]);
    await workspaces.own("DELETE", `/keys/${fresh.hash}`);
    expect([
      await status(old),
      await status(fresh),
      await status({ secret: textAt(child, "key") }),
    ]).toEqual([401, 401, 401]);
  });

  const wrong = [
    { grace_seconds: -1 },
    { grace_seconds: 604_801 },
    { grace_seconds: 1.5 },
    { grace: 1 },
  ];
  test.each(wrong.map((body) => [body]))("%j returns 400", async (body) => {
    const refused = await errorOf(await rotate(await make(), body));
    expect([refused.status, refused.param]).toEqual([400, Object.keys(body)[0] ?? ""]);
  });
});
