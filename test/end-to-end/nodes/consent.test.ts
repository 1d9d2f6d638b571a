import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import { freshRedis, hasRedis, redisMissing } from "../../support/redis.ts";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import {
  AppSide,
  authorizationCode,
  authorizePath,
  authorizeQuery,
  connectDevice,
  decideDevice,
  keyCode,
  placeOf,
  verifier,
} from "../consent/flows.ts";
import { formWith } from "../consent/page-form.ts";
import { until } from "./support/until.ts";

const patienceMs = 50_000;

/** Consent is given at A, and its app asks B. */
describe.skipIf(!hasRedis)(`consent at one of two gateways${redisMissing}`, () => {
  let people: PeopledGateway;
  let other: TestGateway;
  let [a, b] = [new AppSide(""), new AppSide("")];
  beforeAll(async () => {
    const settings = {
      storageUrl: await migratedDatabase(),
      sharedUrl: await freshRedis(),
      trustProxy: true,
    };
    people = await startPeopled(settings.storageUrl, settings);
    other = await startGateway(settings);
  }, 240_000);
  let tests = 0;
  beforeEach(() => {
    // Each test has an address of its own, whose requests are counted.
    const headers = { "x-forwarded-for": `203.0.113.${(tests += 1)}` };
    [a, b] = [new AppSide(people.gateway().baseUrl, headers), new AppSide(other.baseUrl, headers)];
  });
  afterAll(async () => {
    await other.stop();
    await people.stop();
  });

  const opensAt = async (app: AppSide, token: string): Promise<boolean> =>
    (await app.bearer(token, "/auth/key")).ok;
  const opensAtBoth = (token: string): Promise<void> =>
    until(async () => (await opensAt(a, token)) && (await opensAt(b, token)), {
      patienceMs,
      what: "a token opens both gateways",
    });
  const closedAtBoth = (token: string): Promise<void> =>
    until(async () => !(await opensAt(a, token)) && !(await opensAt(b, token)), {
      patienceMs,
      what: "a token is refused at both gateways",
    });
  const newestId = async (): Promise<string> =>
    Object(await people.owner.json("GET", "/connections")).data[0].id;
  const atBoth = <Answer>(
    count: number,
    ask: (app: AppSide) => Promise<Answer>,
  ): Promise<Answer[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => ask(index % 2 === 0 ? a : b)));

  test("a device flow at B, approved at A, gets a token at B, and A revokes it at both", async () => {
    const { deviceCode, userCode } = await b.startDevice();
    expect((await decideDevice(people.owner, userCode)).status).toBe(200);
    const token = textAt(await (await b.poll(deviceCode)).json(), "access_token");
    await opensAtBoth(token);
    await people.owner.json("DELETE", `/connections/${await newestId()}`);
    expect(await opensAt(a, token)).toBe(false);
    await closedAtBoth(token);
  });

  test("a client registers at B, connects at A, exchanges and refreshes at B, and revokes at A", async () => {
    const clientId = await b.clientId();
    const code = await authorizationCode(people.owner, clientId);
    const first: unknown = await (await b.exchange({ code, client_id: clientId })).json();
    await opensAtBoth(textAt(first, "access_token"));
    const second: unknown = await (await b.refresh(textAt(first, "refresh_token"))).json();
    await closedAtBoth(textAt(first, "access_token"));
    await opensAtBoth(textAt(second, "access_token"));
    await a.form("/oauth/revoke", {
      token: textAt(second, "refresh_token"),
      client_id: clientId,
    });
    await closedAtBoth(textAt(second, "access_token"));
    expect((await b.refresh(textAt(second, "refresh_token"))).status).toBe(401);
  });

  test("a token revoked at B is revoked at both as soon as B knows it", async () => {
    const token = textAt(await connectDevice(a, people.owner), "access_token");
    await opensAtBoth(token);
    await b.form("/oauth/revoke", { token });
    await closedAtBoth(token);
  });

  test("a key of /auth is exchanged at B and revoked at A", async () => {
    const code = await keyCode(people.owner);
    const key = textAt(
      await (await b.json("/auth/keys", { code, code_verifier: verifier })).json(),
      "key",
    );
    await opensAtBoth(key);
    await people.owner.json("DELETE", `/connections/${await newestId()}`);
    await closedAtBoth(key);
  });

  test("a person blocked at A loses their tokens at B", async () => {
    const organization: unknown = await people.owner.json("POST", "/organizations", {
      name: "Team",
    });
    const member = await people.invited(textAt(organization, "id"), {
      email: "member@example.com",
      role: "member",
    });
    const tokens = await connectDevice(a, member, {
      decided: { workspace_id: textAt(organization, "workspace_id") },
    });
    await opensAtBoth(textAt(tokens, "access_token"));
    await people.owner.json("PATCH", `/admin/users/${textAt(tokens, "user_id")}`, {
      blocked: true,
    });
    await closedAtBoth(textAt(tokens, "access_token"));
  });

  const ok = ({ status }: Response): boolean => status === 200;
  test("of a hundred parallel exchanges of a code for a key at both, one succeeds with one key", async () => {
    const forKey = await keyCode(people.owner, { key_label: "Exchanged a hundred times" });
    const answers = await atBoth(100, (app) =>
      app.json("/auth/keys", { code: forKey, code_verifier: verifier }),
    );
    expect(answers.filter(ok)).toHaveLength(1);
    const keys = await people
      .gateway()
      .app.storage.database.withTables<{ llm_keys: { id: string; name: string } }>()
      .selectFrom("llm_keys")
      .select("id")
      .where("name", "=", "Exchanged a hundred times")
      .execute();
    expect(keys).toHaveLength(1);
  });

  test("of a hundred parallel exchanges of an OAuth code at both, one succeeds", async () => {
    const clientId = await a.clientId();
    const code = await authorizationCode(people.owner, clientId);
    expect(
      (await atBoth(100, (app) => app.exchange({ code, client_id: clientId }))).filter(ok),
    ).toHaveLength(1);
  });

  test("of a hundred parallel polls, and of a hundred refreshes, at both, one succeeds", async () => {
    const { deviceCode, userCode } = await a.startDevice({ scope: "inference offline_access" });
    await decideDevice(people.owner, userCode);
    const polls = (await atBoth(100, (app) => app.poll(deviceCode))).filter(ok);
    expect(polls).toHaveLength(1);
    const token = textAt(await polls[0]?.json(), "refresh_token");
    expect((await atBoth(100, (app) => app.refresh(token))).filter(ok)).toHaveLength(1);
  });

  test("a form shown by A can be submitted to B", async () => {
    const clientId = await a.clientId();
    const page = await (
      await people.owner.ask("GET", `${authorizePath}?${authorizeQuery(clientId)}`)
    ).text();
    const cookie = [...people.owner.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(other.origin + authorizePath, {
      method: "POST",
      redirect: "manual",
      headers: { cookie, origin: "http://127.0.0.1" },
      body: formWith(page, { decision: "approve" }),
    });
    const code = placeOf(answer).searchParams.get("code") ?? "";
    expect((await a.exchange({ code, client_id: clientId })).status).toBe(200);
  });
});
