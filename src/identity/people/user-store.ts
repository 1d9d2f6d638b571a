import { sql, type Kysely, type Transaction } from "kysely";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import type { PeopleTables } from "./people-tables.ts";

/** A user as operators see one. Times are in milliseconds. */
export interface UserRecord {
  /** A `usr_` id. */
  id: string;
  name: string;
  email: string;
  operator: boolean;
  createdAtMs: number;
  /** Null where the user may sign in. */
  blockedAtMs: number | null;
  /** Null where the user has not signed in since this is recorded. */
  lastSignedInAtMs: number | null;
  /** The personal workspace. */
  workspaceId: string | null;
}

/** The filter of a list of users. */
export interface UserQuery {
  /** A part of the name or the address, in any case. */
  search?: string | undefined;
  operator?: boolean | undefined;
  blocked?: boolean | undefined;
  /** Excludes users who neither signed up nor signed in since. */
  activeSinceMs?: number | undefined;
  limit: number;
  offset: number;
}

/** The ways in which a user can sign in. */
export interface SignInWays {
  password: boolean;
  passkeys: number;
  /** Ids of the OpenID providers that are linked. */
  providers: string[];
}

/** A way to sign in. */
export interface SignInMethod {
  /** An `acct_` or `psk_` id. */
  id: string;
  type: "password" | "passkey" | "oidc";
  /** The id of the OpenID provider; null for the others. */
  provider: string | null;
  name: string | null;
  createdAt: string | null;
}

/** Returns the pattern of a literal search: `%` and `_` are escaped. */
const containing = (text: string): string => `%${text.toLowerCase().replace(/[\\%_]/g, "\\$&")}%`;

/** Stores users, for operators. */
export class UserStore {
  constructor(private readonly database: Kysely<PeopleTables>) {}

  /** Returns a page of users, newest first, and their total number. */
  async list(query: UserQuery): Promise<{ users: UserRecord[]; total: number }> {
    const [rows, { count }] = await Promise.all([
      this.rows(query)
        .orderBy("user.created_at", "desc")
        .orderBy("user.id", "desc")
        .limit(query.limit)
        .offset(query.offset)
        .execute(),
      this.matching(query)
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .executeTakeFirstOrThrow(),
    ]);
    return { users: rows.map(fromRow), total: Number(count) };
  }

  async find(id: string): Promise<UserRecord | undefined> {
    const row = await this.rows({}).where("user.id", "=", id).executeTakeFirst();
    return row && fromRow(row);
  }

  /** Returns the e-mail addresses of users by their ids. */
  async emailsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (ids.length === 0) return new Map();
    const rows = await this.database
      .selectFrom("users")
      .select(["id", "email"])
      .where("id", "in", ids)
      .execute();
    return new Map(rows.map(({ id, email }) => [id, email]));
  }

  async waysOf(id: string): Promise<SignInWays> {
    const [accounts, { count }] = await Promise.all([
      this.database
        .selectFrom("user_accounts")
        .select("provider_id")
        .where("user_id", "=", id)
        .orderBy("provider_id")
        .execute(),
      this.database
        .selectFrom("passkeys")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("user_id", "=", id)
        .executeTakeFirstOrThrow(),
    ]);
    const ids = accounts.map(({ provider_id: provider }) => provider);
    return {
      password: ids.includes("credential"),
      passkeys: Number(count),
      providers: ids.filter((each) => each !== "credential"),
    };
  }

  /**
   * Returns every way to sign in, oldest first, and whether the password requires a second factor.
   */
  async methodsOf(
    userId: string,
    database = this.database,
  ): Promise<{ methods: SignInMethod[]; twoFactor: boolean }> {
    const accounts = await database
      .selectFrom("user_accounts")
      .selectAll()
      .where("user_id", "=", userId)
      .orderBy("id")
      .execute();
    const passkeys = await database
      .selectFrom("passkeys")
      .selectAll()
      .where("user_id", "=", userId)
      .orderBy("id")
      .execute();
    const user = await database
      .selectFrom("users")
      .select("two_factor_enabled")
      .where("id", "=", userId)
      .executeTakeFirst();
    const ofAccounts = accounts.map(
      ({ id, provider_id: provider, created_at: createdAt }): SignInMethod =>
        provider === "credential"
          ? { id, type: "password", provider: null, name: null, createdAt }
          : { id, type: "oidc", provider, name: null, createdAt },
    );
    const ofPasskeys = passkeys.map(
      ({ id, name, created_at: createdAt }): SignInMethod => ({
        id,
        type: "passkey",
        provider: null,
        name,
        createdAt,
      }),
    );
    return { methods: [...ofAccounts, ...ofPasskeys], twoFactor: user?.two_factor_enabled === 1 };
  }

  /**
   * Removes one way to sign in. Throws `not_found`, and `conflict` where none would be left that
   * works with these providers.
   */
  async unlink({
    userId,
    id,
    providers,
  }: {
    userId: string;
    id: string;
    providers: readonly string[];
  }): Promise<void> {
    await this.database.transaction().execute(async (transaction) => {
      // Locks the row, so that another transaction that removes ways to sign in waits, on every
      // gateway.
      await transaction
        .updateTable("users")
        .set(({ ref }) => ({ name: ref("name") }))
        .where("id", "=", userId)
        .execute();
      const { methods } = await this.methodsOf(userId, transaction);
      if (!methods.some((method) => method.id === id)) {
        throw new GatewayError(
          "not_found",
          "You have no way to sign in with this id. GET /session/sign-in-methods lists them.",
        );
      }
      const works = ({ provider }: SignInMethod): boolean =>
        provider === null || providers.includes(provider);
      if (!methods.some((method) => method.id !== id && works(method))) {
        throw new GatewayError(
          "conflict",
          "This is the last way to sign in. Add another one first.",
        );
      }
      await transaction
        .deleteFrom("user_accounts")
        .where("id", "=", id)
        .where("user_id", "=", userId)
        .execute();
      await transaction
        .deleteFrom("passkeys")
        .where("id", "=", id)
        .where("user_id", "=", userId)
        .execute();
    });
  }

  /** Returns the hash of the password; undefined for accounts without one. */
  async passwordHashOf(userId: string): Promise<string | undefined> {
    const row = await this.database
      .selectFrom("user_accounts")
      .select("password")
      .where("user_id", "=", userId)
      .where("provider_id", "=", "credential")
      .executeTakeFirst();
    return row?.password ?? undefined;
  }

  /**
   * Returns the account of an address, and its personal workspace; undefined where there is none.
   */
  async accountOf(
    email: string,
  ): Promise<{ id: string; email: string; workspaceId: string | null } | undefined> {
    return this.database
      .selectFrom("users as user")
      .leftJoin("workspaces as own", "own.owner_user_id", "user.id")
      .select(["user.id", "user.email", "own.id as workspaceId"])
      .where("user.email", "=", email.toLowerCase())
      .executeTakeFirst();
  }

  /** Records a sign-in. Throws `forbidden` for a blocked user. */
  async noteSignIn(id: string, nowMs: number): Promise<void> {
    const row = await this.database
      .updateTable("users")
      .set({ last_signed_in_at_ms: nowMs })
      .where("id", "=", id)
      .where("blocked_at_ms", "is", null)
      .returning("id")
      .executeTakeFirst();
    if (row === undefined)
      throw new GatewayError(
        "forbidden",
        "This account is blocked. Ask the operator of the service.",
      );
  }

  /** Returns the number of users of each kind. */
  async counts(): Promise<{ total: number; operators: number; blocked: number }> {
    const count = async (query: Omit<UserQuery, "limit" | "offset">): Promise<number> =>
      Number(
        (
          await this.matching(query)
            .select(({ fn }) => fn.countAll<number>().as("count"))
            .executeTakeFirstOrThrow()
        ).count,
      );
    const [total, operators, blocked] = await Promise.all([
      count({}),
      count({ operator: true }),
      count({ blocked: true }),
    ]);
    return { total, operators, blocked };
  }

  /** Returns the users who may enter a workspace and are not blocked. */
  async peopleIn(workspaceId: string): Promise<{ id: string; email: string }[]> {
    const workspace = this.database
      .selectFrom("workspaces")
      .where("workspaces.id", "=", workspaceId);
    const members = workspace.innerJoin(
      "organization_members as member",
      "member.organization_id",
      "workspaces.organization_id",
    );
    return this.database
      .selectFrom("users")
      .select(["id", "email"])
      .where("blocked_at_ms", "is", null)
      .where((where) =>
        where.or([
          where(
            "id",
            "in",
            workspace
              .select("owner_user_id")
              .where("owner_user_id", "is not", null)
              .$castTo<{ id: string }>(),
          ),
          where("id", "in", members.select("member.user_id")),
        ]),
      )
      .orderBy("id")
      .execute();
  }

  /** Returns the number of members of every organisation, by its id. */
  async membersByOrganization(): Promise<Map<string, number>> {
    const rows = await this.database
      .selectFrom("organization_members")
      .select(({ fn }) => ["organization_id as id", fn.countAll<number>().as("count")])
      .groupBy("organization_id")
      .execute();
    return new Map(rows.map(({ id, count }) => [id, Number(count)]));
  }

  private rows(query: Omit<UserQuery, "limit" | "offset">) {
    return this.matching(query)
      .leftJoin("workspaces as own", "own.owner_user_id", "user.id")
      .select([
        "user.id",
        "user.name",
        "user.email",
        "user.operator",
        "user.created_at",
        "user.blocked_at_ms",
        "user.last_signed_in_at_ms",
        "own.id as workspace_id",
      ]);
  }

  private matching({
    search,
    operator,
    blocked,
    activeSinceMs,
  }: Omit<UserQuery, "limit" | "offset">) {
    let query = this.database.selectFrom("users as user");
    if (search !== undefined) {
      const pattern = containing(search);
      query = query.where(
        sql<boolean>`(lower("user".name) like ${pattern} escape '\\' or "user".email like ${pattern} escape '\\')`,
      );
    }
    if (operator !== undefined) query = query.where("user.operator", "=", operator ? 1 : 0);
    if (blocked !== undefined)
      query = query.where("user.blocked_at_ms", blocked ? "is not" : "is", null);
    if (activeSinceMs !== undefined) {
      query = query.where((where) =>
        where.or([
          where("user.last_signed_in_at_ms", ">=", activeSinceMs),
          where("user.created_at", ">=", new Date(activeSinceMs).toISOString()),
        ]),
      );
    }
    return query;
  }
}

interface Row {
  id: string;
  name: string;
  email: string;
  operator: number;
  created_at: string;
  blocked_at_ms: number | null;
  last_signed_in_at_ms: number | null;
  workspace_id: string | null;
}

const fromRow = (row: Row): UserRecord => ({
  id: row.id,
  name: row.name,
  email: row.email,
  operator: row.operator === 1,
  createdAtMs: Date.parse(row.created_at),
  blockedAtMs: row.blocked_at_ms,
  lastSignedInAtMs: row.last_signed_in_at_ms,
  workspaceId: row.workspace_id,
});

/** Stores the password of a user who had none. */
export async function insertPassword(
  transaction: Transaction<PeopleTables>,
  { userId, password, nowMs }: { userId: string; password: string; nowMs: number },
): Promise<void> {
  const now = new Date(nowMs).toISOString();
  await transaction
    .insertInto("user_accounts")
    .values({
      id: newId("acct", nowMs),
      account_id: userId,
      provider_id: "credential",
      user_id: userId,
      password,
      created_at: now,
      updated_at: now,
    })
    .execute();
}
