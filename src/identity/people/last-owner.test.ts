import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { migratedDatabase } from "../../../test/support/postgres.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { migrations } from "../../platform/storage/migrations/index.ts";
import { openStorage } from "../../platform/storage/open-storage.ts";
import type { Storage } from "../../platform/storage/storage.ts";
import { createSecretHasher } from "../keys/secret-hasher.ts";
import { workspaceRow } from "../workspaces/workspace-store.ts";
import { Invitations } from "./links/invitations.ts";
import { Organizations } from "./organizations.ts";
import { SessionStore } from "./sign-in/session-store.ts";
import type { PeopleTables } from "./people-tables.ts";
import { UserEditor } from "./user-editor.ts";
import { UserStore } from "./user-store.ts";

const directory = mkdtempSync(join(tmpdir(), "switchyard-last-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const engines: [string, () => Promise<string>][] = [
  ["SQLite", async () => `sqlite:${join(directory, "people.db")}`],
  ["Postgres", migratedDatabase],
];
const [anna, bert] = ["usr_anna", "usr_bert"];

/** What one gateway changes people with; two of them know each other by the database alone. */
function gatewayOn(database: Storage<PeopleTables>["database"]) {
  const [clock, hasher] = [new FakeClock(), createSecretHasher(new Uint8Array(32))];
  const invitations = new Invitations({ database, clock, hasher });
  return {
    invitations,
    organizations: new Organizations({
      database,
      clock,
      invitations,
      plan: "free",
      putWorkspace: () => undefined,
    }),
    users: new UserEditor({
      database,
      clock,
      users: new UserStore(database),
      sessions: new SessionStore(database),
      operatorWorkspaceId: "ws_first",
      workspace: () => undefined,
      putWorkspace: () => undefined,
      revokeCredentials: async () => ({ llmKeys: 0, managementKeys: 0, providerKeys: 0 }),
    }),
  };
}

/** What came of everything at once: done, or the code of the refusal. */
const outcomes = (work: readonly Promise<unknown>[]): Promise<string[]> => {
  const refusal = (error: unknown): string =>
    error instanceof GatewayError ? error.code : String(error);
  return Promise.all(work.map((each) => each.then(() => "done", refusal)));
};

describe.each(engines)("concurrent changes by two gateways on %s", (_, freshUrl) => {
  let storage: Storage<PeopleTables>;
  beforeAll(async () => {
    storage = await openStorage<PeopleTables>({
      url: await freshUrl(),
      durability: "process",
      migrations,
      commitStatements: { inserts: [], adds: [] },
    });
    await storage.database
      .insertInto("owner_claims")
      .values({ id: "owner", token_hash: "-", expires_at_ms: 0, claimed_at_ms: 1, user_id: null })
      .execute();
    await storage.database
      .insertInto("organizations")
      .values({ id: "org_1", name: "Acme", created_at_ms: 0 })
      .execute();
    await storage.database
      .insertInto("workspaces")
      .values(
        workspaceRow({
          id: "ws_org",
          name: "Acme",
          plan: "free",
          createdAtMs: 0,
          organizationId: "org_1",
        }),
      )
      .execute();
  }, 240_000);
  afterAll(() => storage.close());

  beforeEach(async () => {
    await storage.database.deleteFrom("users").execute();
    for (const id of [anna, bert]) {
      await storage.database
        .insertInto("users")
        .values({
          id,
          name: id,
          email: `${id}@example.com`,
          email_verified: 1,
          image: null,
          operator: 1,
          created_at: "",
          updated_at: "",
          blocked_at_ms: null,
          last_signed_in_at_ms: null,
        })
        .execute();
      await storage.database
        .insertInto("organization_members")
        .values({ organization_id: "org_1", user_id: id, role: "owner", joined_at_ms: 0 })
        .execute();
    }
  });

  const operators = async (): Promise<number> =>
    (
      await storage.database
        .selectFrom("users")
        .where("operator", "=", 1)
        .where("blocked_at_ms", "is", null)
        .select("id")
        .execute()
    ).length;
  const rounds = Array.from({ length: 10 }, (__, round) => round);

  test.each(rounds)(
    "two operators who demote, block or delete each other leave one operator (%i)",
    async (round) => {
      const [here, there] = [gatewayOn(storage.database).users, gatewayOn(storage.database).users];
      await storage.database.deleteFrom("organization_members").execute();
      const ways = [
        (users: UserEditor, id: string, by: string) => users.change(id, { operator: false }, by),
        (users: UserEditor, id: string, by: string) => users.change(id, { blocked: true }, by),
        (users: UserEditor, id: string, by: string) => users.remove(id, by),
      ];
      const [one, other] = [ways[round % 3]!, ways[Math.floor(round / 3) % 3]!];
      const became = await outcomes([one(here, bert, anna), other(there, anna, bert)]);
      expect(became.sort()).toEqual(["conflict", "done"]);
      expect(await operators()).toBe(1);
    },
  );

  test.each(rounds)(
    "owners who leave, are demoted or are deleted at once leave their organisation one owner (%i)",
    async (round) => {
      await storage.database
        .insertInto("users")
        .values({
          id: "usr_carl",
          name: "Carl",
          email: "carl@example.com",
          email_verified: 1,
          image: null,
          operator: 1,
          created_at: "",
          updated_at: "",
          blocked_at_ms: null,
          last_signed_in_at_ms: null,
        })
        .execute();
      await storage.database
        .insertInto("organization_members")
        .values({ organization_id: "org_1", user_id: "usr_carl", role: "member", joined_at_ms: 0 })
        .execute();
      const ways = [
        ({ organizations }: ReturnType<typeof gatewayOn>, id: string) =>
          organizations.remove({ organizationId: "org_1", userId: id }, id),
        ({ organizations }: ReturnType<typeof gatewayOn>, id: string) =>
          organizations.changeRole(
            { organizationId: "org_1", userId: id },
            { member: id, role: "member" },
          ),
        ({ users }: ReturnType<typeof gatewayOn>, id: string) => users.remove(id, "usr_carl"),
      ];
      const [one, other] = [ways[round % 3]!, ways[Math.floor(round / 3) % 3]!];
      const became = await outcomes([
        one(gatewayOn(storage.database), anna),
        other(gatewayOn(storage.database), bert),
      ]);
      expect(became.sort()).toEqual(["conflict", "done"]);
      const owners = storage.database
        .selectFrom("organization_members")
        .where("role", "=", "owner")
        .select("user_id")
        .execute();
      expect(await owners).toHaveLength(1);
    },
  );

  test.each(rounds)("two who invite one address leave one open invitation (%i)", async () => {
    await storage.database.deleteFrom("organization_invitations").execute();
    const wanted = { organizationId: "org_1", email: "carl@example.com" } as const;
    const became = await outcomes([
      gatewayOn(storage.database).invitations.create({
        ...wanted,
        role: "owner",
        inviterUserId: anna,
      }),
      gatewayOn(storage.database).invitations.create({
        ...wanted,
        role: "member",
        inviterUserId: bert,
      }),
    ]);
    expect(became).toEqual(["done", "done"]);
    expect(await gatewayOn(storage.database).invitations.list("org_1")).toHaveLength(1);
  });
});
