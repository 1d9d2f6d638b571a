import { afterAll, beforeAll, expect, test } from "bun:test";
import { at, listAt, textAt } from "../api/at.ts";
import { startPeopled, type PeopledGateway } from "../api/people-browser.ts";
import { callTool, toolNames, type ToolOutcome } from "./mcp-client.ts";
import { toolContract } from "./tool-contract.ts";

let people: PeopledGateway;
let operatorsKey = "";
let membersKey = "";
let ownerId = "";
beforeAll(async () => {
  people = await startPeopled(undefined, { sandbox: true });
  operatorsKey = textAt(
    await people.owner.json("POST", "/keys", {
      name: "the operator's own",
      operator: true,
      allowed_endpoints: null,
    }),
    "key",
  );
  const organization = await people.owner.json("POST", "/organizations", { name: "Others" });
  const member = await people.invited(textAt(organization, "id"), {
    email: "member@example.com",
    role: "admin",
  });
  membersKey = textAt(
    await member.json("POST", "/keys", { name: "a member's own", allowed_endpoints: null }),
    "key",
  );
  const users = await people.owner.json("GET", "/admin/users");
  ownerId = textAt(
    listAt(users, "data").find((user) => at(user, "email") === "owner@example.com"),
    "id",
  );
}, 240_000);
afterAll(() => people.stop());

const url = (): string => `${people.gateway().origin}/mcp`;
const call = (
  name: string,
  given: Record<string, unknown>,
  secret = operatorsKey,
): Promise<ToolOutcome> => callTool(url(), { name, given, secret });
const named = (wanted: boolean): string[] =>
  Object.keys(toolContract).filter((name) => (toolContract[name]?.operators === true) === wanted);

test("an operator's LLM key sees operator tools and unscoped tools, a member's only unscoped ones", async () => {
  const unscoped = named(false).filter((name) =>
    [null, "inference"].includes(toolContract[name]?.scope ?? null),
  );
  expect(await toolNames(url(), operatorsKey)).toEqual([...unscoped, ...named(true)]);
  expect(await toolNames(url(), membersKey)).toEqual(unscoped);
});

test.each(named(true))(
  "%s accepts the operator's LLM key and is unknown to a member's",
  async (name) => {
    const { given = {} } = toolContract[name] ?? {};
    const bare = await call(name, name === "admin_get_user" ? { user_id: ownerId } : given);
    if (name === "admin_grant_credits")
      expect(bare).toEqual({ refused: expect.stringMatching(/^confirm: must be true/) });
    else expect(bare).toHaveProperty("result");
    expect(await call(name, given, membersKey)).toEqual({
      error: expect.objectContaining({ code: -32602 }),
    });
  },
);

test("admin_get_user returns the response of the REST endpoint", async () => {
  expect(await call("admin_get_user", { user_id: ownerId })).toEqual({
    result: await people.owner.json("GET", `/admin/users/${ownerId}`),
  });
  expect(await call("admin_get_user", { user_id: "usr_none" })).toHaveProperty("refused");
});

test("admin_grant_credits grants once per idempotency key and is audited", async () => {
  const credits = async (): Promise<number> =>
    Number(at(await people.owner.json("GET", "/credits"), "monthly_balance"));
  const before = await credits();
  const given = {
    user_id: ownerId,
    amount: 2.5,
    description: "For the test",
    confirm: true,
    idempotency_key: "grant-once",
  };
  const [first, second] = [
    await call("admin_grant_credits", given),
    await call("admin_grant_credits", given),
  ];
  expect(first).toMatchObject({ result: { amount: 2.5 } });
  expect(second).toEqual(first);
  expect(await credits()).toBeCloseTo(before + 2.5, 6);
  expect(await call("admin_grant_credits", { ...given, amount: 3 })).toHaveProperty("refused");
  await call("admin_grant_credits", { ...given, idempotency_key: "grant-again" });
  expect(await credits()).toBeCloseTo(before + 5, 6);
  expect(JSON.stringify(await people.owner.json("GET", "/security/audit"))).toContain(
    "POST /admin/grants",
  );
});
