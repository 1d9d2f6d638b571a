import { afterAll, beforeAll, expect, test } from "bun:test";
import { minuteMs } from "../../../src/platform/kernel/clock.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, textAt } from "./at.ts";
import { errorOf } from "./error-envelope-of.ts";
import { startTwoWorkspaces, type TwoWorkspaces } from "./two-workspaces.ts";

const clock = new FakeClock();
let workspaces: TwoWorkspaces;
beforeAll(async () => {
  workspaces = await startTwoWorkspaces(
    async () => undefined,
    {},
    { clock, probeKey: async () => ({ outcome: "accepted", reason: null }) },
  );
}, 240_000);
afterAll(() => workspaces.stop());

const json = async (method: string, path: string, body?: unknown): Promise<unknown> =>
  (await workspaces.own(method, path, body)).json();

/** Makes a record, and gives its path with the path of the record in the answer to a change. */
const makers: Record<string, () => Promise<[path: string, record: string]>> = {
  "a key": async () => [
    `/keys/${textAt(await json("POST", "/keys", { name: "k" }), "data.hash")}`,
    "data.",
  ],
  "a preset": async () => [
    `/presets/${textAt(await json("POST", "/presets", { slug: "p", name: "p", config: {} }), "slug")}`,
    "",
  ],
  "a budget": async () => [
    `/budgets/${textAt(await json("POST", "/budgets", { name: "b", limit: 1 }), "data.id")}`,
    "",
  ],
  "a provider key": async () => [`/auth/byok/keys/${await providerKey("one")}`, ""],
  "a donation": async () => {
    const id = await providerKey("two");
    await json("POST", "/byok/donated", { key_id: id, consent: true });
    return [`/byok/donated/${id}`, ""];
  },
};

const providerKey = async (name: string): Promise<string> =>
  textAt(
    await json("POST", "/auth/byok", { provider_id: "openai", api_key: `sk-0123456789-${name}` }),
    "id",
  );

test.each(Object.keys(makers))(
  "an empty change to %s keeps it and its updated_at",
  async (kind) => {
    const [path, record] = await (makers[kind] as (typeof makers)[string])();
    const before = at(await json("PATCH", path, {}), `${record}updated_at`);
    clock.advance(minuteMs);
    const answer = await workspaces.own("PATCH", path, {});
    expect([answer.status, at(await answer.json(), `${record}updated_at`)]).toEqual([200, before]);
  },
);

test.each(["/auth/byok/keys/", "/byok/donated/"])(
  "a misspelt field in PATCH %s returns 400 that names the field",
  async (path) => {
    const id = await providerKey(`misspelt-${path.length}`);
    expect(
      await errorOf(await workspaces.own("PATCH", path + id, { enable: false })),
    ).toMatchObject({ status: 400, param: "enable" });
  },
);

test("changing the donation of a key that is not donated returns 409, even with an empty body", async () => {
  expect(
    await errorOf(await workspaces.own("PATCH", `/byok/donated/${await providerKey("own")}`, {})),
  ).toMatchObject({ status: 409 });
});
