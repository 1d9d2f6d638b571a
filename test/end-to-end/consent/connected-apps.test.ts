import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { forgetConsent } from "../../../src/app/start-rounds.ts";
import type { ConsentTables } from "../../../src/consent/consent-tables.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { allEngines } from "../api/two-workspaces.ts";
import { AppSide, authorizationCode, connectDevice, keyCode, verifier } from "./flows.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

describe.each(allEngines)("the end of connected apps, on %s", (_, freshUrl) => {
  let people: PeopledGateway;
  let app: AppSide;
  const clock = new FakeClock();
  beforeAll(async () => {
    people = await startPeopled(await freshUrl(), {}, { clock });
    app = new AppSide(people.gateway().baseUrl);
  }, 240_000);
  afterAll(() => people.stop());

  const connections = async (): Promise<
    { id: string; client: { name: string }; origin: string; key_id: string }[]
  > => Object(await people.owner.json("GET", "/connections")).data;
  const audited = async (): Promise<string[]> =>
    Object(await people.owner.json("GET", "/security/audit?limit=200")).data.map(
      (entry: { actor: { kind: string }; action: string }) =>
        `${entry.actor.kind}: ${entry.action}`,
    );
  const isLive = async (token: string): Promise<boolean> =>
    (await app.bearer(token, "/auth/key")).ok;

  test("an app with a key from /auth is listed, and ends with its key or its connection", async () => {
    const given = async (): Promise<string> => {
      clock.advance(1);
      const code = await keyCode(people.owner, { key_label: "Of the app" });
      return textAt(
        await (await app.json("/auth/keys", { code, code_verifier: verifier })).json(),
        "key",
      );
    };
    const first = await given();
    const [connection] = await connections();
    expect(connection).toMatchObject({
      origin: "key",
      client: { name: "app.example" },
      scopes: ["inference"],
    });
    await people.owner.json("DELETE", `/connections/${connection?.id}`);
    expect(await isLive(first)).toBe(false);
    const second = await given();
    const [record] = Object(await people.owner.json("GET", "/keys")).data;
    expect(record.name).toBe("Of the app");
    await people.owner.json("DELETE", `/keys/${record.hash}`);
    expect(await isLive(second)).toBe(false);
    expect((await connections()).map(({ origin }) => origin)).not.toContain("key");
  });

  test("every grant, refresh and end is in the audit log", async () => {
    const offline = { fields: { scope: "inference offline_access", client_name: "Told" } };
    const first = await connectDevice(app, people.owner, offline);
    const second: unknown = await (await app.refresh(textAt(first, "refresh_token"))).json();
    await app.refresh(textAt(first, "refresh_token"));
    expect(await isLive(textAt(second, "access_token"))).toBe(false);
    const given = await connectDevice(app, people.owner, offline);
    await app.form("/oauth/revoke", { token: textAt(given, "access_token") });
    const clientId = await app.clientId();
    const code = await authorizationCode(people.owner, clientId);
    await app.exchange({ code, client_id: clientId });
    await app.exchange({ code, client_id: clientId });
    await connectDevice(app, people.owner, offline);
    const [byPerson] = await connections();
    await people.owner.json("DELETE", `/connections/${byPerson?.id}`);
    clock.advance(1);
    await connectDevice(app, people.owner, offline);
    const [byOperator] = await connections();
    await people.owner.json("DELETE", `/admin/connections/${byOperator?.id}`);
    await app.json("/auth/keys", { code: await keyCode(people.owner), code_verifier: verifier });
    expect(await audited()).toEqual(
      expect.arrayContaining([
        "user: connect app (device): Told",
        "app: refresh app",
        "app: end app (refresh token reused)",
        "app: end app (revoked by the app)",
        "user: connect app (oauth): A client",
        "app: end app (authorization code replayed)",
        "user: DELETE /connections/:id",
        "user: DELETE /admin/connections/:id",
        "user: connect app (key): app.example",
      ]),
    );
  });

  test("a member's connected app ends, and is audited, when the member is removed or deleted", async () => {
    const organization: unknown = await people.owner.json("POST", "/organizations", {
      name: "Team",
    });
    const [id, workspaceId] = [textAt(organization, "id"), textAt(organization, "workspace_id")];
    const member = await people.invited(id, { email: "removed@example.com", role: "member" });
    const removed = await connectDevice(app, member, { decided: { workspace_id: workspaceId } });
    expect(await isLive(textAt(removed, "access_token"))).toBe(true);
    await people.owner.json("DELETE", `/organizations/${id}/members/${textAt(removed, "user_id")}`);
    expect(await isLive(textAt(removed, "access_token"))).toBe(false);
    const other = await people.invited(id, { email: "deleted@example.com", role: "member" });
    const deleted = await connectDevice(app, other, {
      fields: { scope: "inference offline_access" },
      decided: { workspace_id: workspaceId },
    });
    await people.owner.json("DELETE", `/admin/users/${textAt(deleted, "user_id")}`);
    expect(await isLive(textAt(deleted, "access_token"))).toBe(false);
    expect((await app.refresh(textAt(deleted, "refresh_token"))).status).toBe(401);
  });

  test("ended connections are deleted by the leading gateway", async () => {
    const clientId = await app.clientId();
    await app.exchange({
      code: await authorizationCode(people.owner, clientId),
      client_id: clientId,
    });
    await connectDevice(app, people.owner, { fields: { scope: "inference offline_access" } });
    for (const { id } of await connections())
      await people.owner.json("DELETE", `/connections/${id}`);
    await app.startDevice();
    const { database } = people.gateway().app.storage;
    const { consent, insights } = people.gateway().app;
    const rows = async (): Promise<number[]> =>
      Promise.all(
        (["device_codes", "authorization_codes", "connections"] as const).map(async (table) =>
          Number(
            (
              await withTables<Pick<ConsentTables, keyof ConsentTables>>(database)
                .selectFrom(table)
                .select(({ fn }) => fn.countAll().as("count"))
                .executeTakeFirstOrThrow()
            ).count,
          ),
        ),
      );
    expect((await rows()).every((count) => count > 0)).toBe(true);
    const forget = async (): Promise<void> => {
      clock.advance(91 * 86_400_000);
      const ran = Promise.withResolvers<void>();
      const watched = { ...consent, removeEnded: () => consent.removeEnded().then(ran.resolve) };
      const timer = forgetConsent(
        { consent: watched, isLeader: () => true, insights, logger: { error: ran.reject } },
        10,
      );
      await ran.promise;
      clearInterval(timer);
    };
    await forget();
    // A key that was deleted by hand ends its connection first.
    await forget();
    expect(await rows()).toEqual([0, 0, 0]);
  });
});
