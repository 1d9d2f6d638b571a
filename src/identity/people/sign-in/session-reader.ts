import { timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Workspace } from "../../workspaces/workspace-store.ts";
import type { PeopleTables } from "../people-tables.ts";
import { hasSecondFactor, secondFactorMissing } from "./second-factors.ts";
import { type SessionCaller, workspaceHeader } from "./sessions.ts";
import { isRole, scopesOf } from "../roles.ts";

const decoded = (value: string): string | undefined => {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
};

/**
 * Returns the token of a session cookie, `token.signature`, where the signature is valid:
 * HMAC-SHA256 in base64 under the sign-in secret. The database holds only tokens, so reading it
 * yields no session.
 */
function tokenOfCookie(value: string, secret: string): string | undefined {
  const text = decoded(value);
  const dot = text?.lastIndexOf(".") ?? -1;
  if (text === undefined || dot < 1) return undefined;
  const token = text.slice(0, dot);
  const expected = new Bun.CryptoHasher("sha256", secret).update(token).digest();
  const given = Buffer.from(text.slice(dot + 1), "base64");
  return given.length === expected.length && timingSafeEqual(given, expected) ? token : undefined;
}

/** Dependencies of reading sessions. Workspaces are in memory. */
interface SessionReaderOptions {
  database: Kysely<PeopleTables>;
  /** The secret that the library signs cookies with. */
  secret: string;
  workspace(id: string): Workspace | undefined;
}

/**
 * Finds the caller of a session cookie. It queries the database each time, so that a revoked
 * session, a removed role or a removed member takes effect with the next request.
 */
export class SessionReader {
  constructor(private readonly options: SessionReaderOptions) {}

  /**
   * Returns the caller, or undefined where the cookie's signature is invalid or its session has
   * ended. A request may name its workspace, regardless of which is active in the session. Throws
   * `forbidden` where the user may not enter that one.
   */
  async find(
    cookie: string,
    nowMs: number,
    namedWorkspaceId?: string,
  ): Promise<SessionCaller | undefined> {
    const token = tokenOfCookie(cookie, this.options.secret);
    const row = token === undefined ? undefined : await this.rowOf(token, namedWorkspaceId);
    if (row === undefined || Date.parse(row.expires_at) <= nowMs) return undefined;
    const place = this.placeOf(row);
    if (place === undefined) return undefined;
    if (namedWorkspaceId !== undefined && place.barredFrom !== undefined)
      throw secondFactorMissing(place.barredFrom);
    if (namedWorkspaceId !== undefined && place.workspace.id !== namedWorkspaceId) {
      throw new GatewayError(
        "forbidden",
        `You may not enter the workspace that ${workspaceHeader} names. GET /workspaces lists yours.`,
      );
    }
    return {
      kind: "session",
      session: {
        id: row.id,
        startedAtMs: Date.parse(row.created_at),
        expiresAtMs: Date.parse(row.expires_at),
      },
      user: {
        id: row.user_id,
        name: row.user_name,
        email: row.email,
        emailVerified: row.email_verified === 1,
        operator: row.operator === 1,
      },
      ...place,
      scopes: scopesOf(place.role),
    };
  }

  private rowOf(token: string, namedWorkspaceId: string | undefined) {
    return this.options.database
      .selectFrom("user_sessions as session")
      .innerJoin("users as user", "user.id", "session.user_id")
      .leftJoin("workspaces as own", "own.owner_user_id", "user.id")
      .leftJoin("workspaces as active", (join) =>
        namedWorkspaceId === undefined
          ? join.onRef("active.id", "=", "session.workspace_id")
          : join.on("active.id", "=", namedWorkspaceId),
      )
      .leftJoin("organization_members as member", (join) =>
        join
          .onRef("member.organization_id", "=", "active.organization_id")
          .onRef("member.user_id", "=", "user.id"),
      )
      .leftJoin("organizations as organization", "organization.id", "active.organization_id")
      .select([
        "session.id",
        "session.created_at",
        "session.expires_at",
        "user.id as user_id",
        "user.name as user_name",
        "user.email",
        "user.email_verified",
        "user.operator",
        "own.id as own_id",
        "active.id as active_id",
        "member.role",
        "organization.name as organization_name",
        "organization.second_factor_required as factor_required",
        hasSecondFactor.as("factor"),
      ])
      .where("session.token", "=", token)
      .where("user.blocked_at_ms", "is", null)
      .executeTakeFirst();
  }

  /**
   * Returns the active workspace while its user may enter it and it is not blocked, or else the
   * personal one, with the organisation that requires a second factor where that is the reason.
   */
  private placeOf(row: {
    own_id: string | null;
    active_id: string | null;
    role: string | null;
    organization_name: string | null;
    factor_required: number | null;
    factor: number;
  }): Pick<SessionCaller, "workspace" | "role" | "barredFrom"> | undefined {
    const active = row.active_id === null ? undefined : this.options.workspace(row.active_id);
    const role = row.role !== null && isRole(row.role) ? row.role : undefined;
    const entered = active?.blocked === true || role === undefined ? undefined : active;
    const isBarred = row.factor_required === 1 && Number(row.factor) !== 1;
    if (entered !== undefined && role !== undefined && !isBarred)
      return { workspace: entered, role, barredFrom: undefined };
    const own = row.own_id === null ? undefined : this.options.workspace(row.own_id);
    const barredFrom = entered && (row.organization_name ?? entered.name);
    return own === undefined ? undefined : { workspace: own, role: "owner", barredFrom };
  }
}
