import type { Kysely } from "kysely";
import type { Clock } from "../platform/kernel/clock.ts";
import { mayBeId, randomBase62 } from "../platform/kernel/ids.ts";
import type { ConsentTables } from "./consent-tables.ts";

/**
 * The most clients that one address may register in a day, and the most that are kept in all before
 * a person connects them.
 */
export const registeredPerDayMax = 200;
const normalUnusedMax = 50_000;
/** Milliseconds after which clients that were registered and never used are deleted. */
const unusedLifetimeMs = 30 * 86_400_000;

/**
 * An OAuth client. All are public: they hold no secret and prove themselves by PKCE (OAuth 2.1,
 * section 2.1).
 */
export interface OauthClient {
  id: string;
  name: string;
  redirectUris: readonly string[];
  clientUri: string | null;
  logoUri: string | null;
  applicationType: "web" | "native";
  createdAtMs: number;
  /** Whether a person has connected it before. */
  wasUsed: boolean;
  /** The host of the metadata document that describes it; null where it registered itself. */
  publishedBy: string | null;
}

/** The fields that a client registers (RFC 7591). */
type NewOauthClient = Omit<OauthClient, "id" | "createdAtMs" | "wasUsed" | "publishedBy">;

/**
 * Cleans the name that an app gives itself of characters that could disguise it: control characters
 * and direction marks.
 */
export const cleanName = (name: string | null | undefined): string =>
  (name ?? "").replaceAll(/[\p{Cc}\p{Cf}]/gu, "").trim();

type Row = ConsentTables["oauth_clients"];

const fromRow = (row: Row): OauthClient => ({
  id: row.id,
  name: row.name,
  redirectUris: JSON.parse(row.redirect_uris) as string[],
  clientUri: row.client_uri,
  logoUri: row.logo_uri,
  applicationType: row.application_type === "native" ? "native" : "web",
  createdAtMs: row.created_at_ms,
  wasUsed: row.last_used_at_ms !== null,
  publishedBy: null,
});

/**
 * Removes the port from a redirect URI where the port is ignored: on loopback addresses (RFC 8252,
 * section 7.3). The rest stays as it is, so that only identical spellings compare equal.
 */
const comparable = (text: string): string =>
  text.replace(/^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])):\d{1,5}(?=[/?]|$)/, "$1");

/**
 * Returns whether a client registered a redirect URI: the same text, with any port on loopback
 * addresses (OAuth 2.1, section 2.3.1).
 */
export const allowsRedirect = ({ redirectUris }: OauthClient, uri: string): boolean =>
  redirectUris.some(
    (registered) => registered === uri || comparable(registered) === comparable(uri),
  );

/** Schemes that a browser executes or reads as a document. No app needs them. */
const refusedSchemes: ReadonlySet<string> = new Set([
  "javascript:",
  "data:",
  "vbscript:",
  "file:",
  "blob:",
  "about:",
  "ws:",
  "wss:",
  "ftp:",
  "view-source:",
  "filesystem:",
]);

/**
 * Returns what is wrong with a client's redirect URI; undefined where it is valid. Custom schemes
 * belong to native apps.
 */
export function redirectProblem(text: string): string | undefined {
  if (!URL.canParse(text) || /[\s\\\p{Cc}]/u.test(text)) return "must be an absolute URI";
  const url = new URL(text);
  if (text.includes("#")) return "must not have a fragment";
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  if (refusedSchemes.has(url.protocol)) return `must not use the scheme ${url.protocol}`;
  if (url.protocol === "http:" && !isLoopback(url))
    return "must use https; http is for loopback addresses alone";
  return undefined;
}

/** Returns whether a redirect URI belongs to a native app, regardless of what its client claims. */
export function isNativeRedirect(text: string): boolean {
  const url = new URL(text);
  return url.protocol !== "https:" || isLoopback(url);
}

/** Stores registered clients. */
export class OauthClients {
  private readonly database: Kysely<ConsentTables>;
  private readonly clock: Clock;
  private readonly unusedMax: number;
  /** The number of registrations until the unused clients are counted again. */
  private untilCounted = 1;

  constructor({
    database,
    clock,
    unusedMax = normalUnusedMax,
  }: { database: Kysely<ConsentTables>; clock: Clock; unusedMax?: number }) {
    this.database = database;
    this.clock = clock;
    this.unusedMax = unusedMax;
  }

  /**
   * Registers a client; undefined where its address has registered too many today. Where too many
   * were never connected, the oldest of those are removed: a client that floods the table pushes
   * its own entries out, and others can still register.
   */
  async register(wanted: NewOauthClient, address: string): Promise<OauthClient | undefined> {
    const nowMs = this.clock.nowMs();
    if ((await this.registeredToday(address, nowMs)) >= registeredPerDayMax) return undefined;
    await this.makeRoom();
    const client: OauthClient = {
      ...wanted,
      id: `client_${randomBase62(24)}`,
      createdAtMs: nowMs,
      wasUsed: false,
      publishedBy: null,
    };
    await this.database
      .insertInto("oauth_clients")
      .values({
        id: client.id,
        name: client.name,
        redirect_uris: JSON.stringify(client.redirectUris),
        client_uri: client.clientUri,
        logo_uri: client.logoUri,
        application_type: client.applicationType,
        scope: null,
        secret_hash: null,
        registered_address: address,
        created_at_ms: nowMs,
        last_used_at_ms: null,
      })
      .execute();
    return client;
  }

  /** Returns the client with this id; undefined where there is none. */
  async find(id: string): Promise<OauthClient | undefined> {
    if (!mayBeId(id)) return undefined;
    const row = await this.database
      .selectFrom("oauth_clients")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    return row && fromRow(row);
  }

  /** Notes that a person connected a client, so that it is kept. */
  async noteUse(id: string): Promise<void> {
    await this.database
      .updateTable("oauth_clients")
      .set({ last_used_at_ms: this.clock.nowMs() })
      .where("id", "=", id)
      .execute();
  }

  /** Deletes clients that were never used. */
  async removeUnused(): Promise<void> {
    await this.database
      .deleteFrom("oauth_clients")
      .where("last_used_at_ms", "is", null)
      .where("created_at_ms", "<", this.clock.nowMs() - unusedLifetimeMs)
      .execute();
  }

  private async registeredToday(address: string, nowMs: number): Promise<number> {
    const { total } = await this.counted()
      .where("registered_address", "=", address)
      .where("created_at_ms", ">", nowMs - 86_400_000)
      .executeTakeFirstOrThrow();
    return Number(total);
  }

  /**
   * Removes the oldest unused clients beyond the limit. They are counted only once for every
   * hundredth of the limit, so that not every registration reads all of them.
   */
  private async makeRoom(): Promise<void> {
    if ((this.untilCounted -= 1) > 0) return;
    this.untilCounted = Math.max(1, Math.floor(this.unusedMax / 100));
    const unused = Number(
      (await this.counted().where("last_used_at_ms", "is", null).executeTakeFirstOrThrow()).total,
    );
    if (unused < this.unusedMax) return;
    const oldest = this.database
      .selectFrom("oauth_clients")
      .select("id")
      .where("last_used_at_ms", "is", null)
      .orderBy("created_at_ms")
      .orderBy("id")
      .limit(unused - this.unusedMax + 1);
    await this.database.deleteFrom("oauth_clients").where("id", "in", oldest).execute();
  }

  private counted() {
    return this.database
      .selectFrom("oauth_clients")
      .select(({ fn }) => fn.countAll<number | bigint | string>().as("total"));
  }
}

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Returns whether a URL leads to a program on the person's own machine (RFC 8252, section 7.3). */
export const isLoopback = ({ hostname }: URL): boolean => loopbackHosts.has(hostname);

const refusals: readonly (readonly [string, (url: URL) => boolean])[] = [
  [
    "must be an https URL, or http on localhost, 127.0.0.1 or [::1]",
    (url) => url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url)),
  ],
  [
    "must not hold a user name or password",
    ({ username, password }) => username !== "" || password !== "",
  ],
  ["must not have a fragment", ({ href }) => href.includes("#")],
];

/**
 * Parses a callback URL of an app (contract: https, or http on localhost, 127.0.0.1 or [::1], any
 * port). Returns the URL, or what is wrong with it. The text has to be in the parser's normal form,
 * so that no other parser sees another host in it.
 */
export function readCallbackUrl(text: string): { url: URL } | { problem: string } {
  if (!URL.canParse(text) || /[\s\\\p{Cc}]/u.test(text))
    return { problem: "must be an absolute URL" };
  const url = new URL(text);
  const refused = refusals.find(([, isRefused]) => isRefused(url));
  return refused === undefined ? { url } : { problem: refused[0] };
}

/** Returns the callback with parameters added to its query. */
export function callbackWith(
  callbackUrl: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const url = new URL(callbackUrl);
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}
