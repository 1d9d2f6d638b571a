import { z } from "zod";
import {
  type AddressGuard,
  UnsafeTargetError,
  guardedFetch,
} from "../platform/notify/public-address.ts";
import { minuteWindow, NamedWindows } from "../platform/rate-windows/named-windows.ts";
import { brand } from "../platform/kernel/brand.ts";
import { dayMs, hourMs, type Clock } from "../platform/kernel/clock.ts";
import { withinTime } from "../platform/kernel/time/within-time.ts";
import { cleanName, isNativeRedirect, redirectProblem, type OauthClient } from "./oauth-clients.ts";

/** The most bytes of a document; the draft recommends 5 kB (section 6.6). */
export const documentBytesMax = 5 * 1_024;
/** Milliseconds that reading a document may take, including the DNS lookup. */
const normalPatienceMs = 5_000;
/**
 * The most documents that are read concurrently, and the most that one person may have read in a
 * minute.
 */
const readingMax = 16;
const perPersonMax = 20;
/** The most documents that are kept, and bounds on how long, which override their publisher. */
const keptMax = 500;
const keptMs = { min: 60_000, normal: hourMs, max: dayMs } as const;
const charactersMax = 1_000;

/**
 * Thrown for a document that describes no valid client. Its message follows the document's address
 * and never repeats what the other side sent.
 */
export class ClientDocumentError extends Error {}

const uris = z.array(z.string().max(2_000)).min(1).max(20);
const names = z.array(z.string().max(100)).max(20).optional();

// Further members of a document are ignored.
const documentSchema = z.looseObject({
  client_id: z.string(),
  client_name: z.string().max(200).optional(),
  client_uri: z.string().max(2_000).optional(),
  redirect_uris: uris,
  grant_types: names,
  response_types: names,
  token_endpoint_auth_method: z.string().max(100).optional(),
  application_type: z.string().max(20).optional(),
  client_secret: z.never().optional(),
  client_secret_expires_at: z.never().optional(),
});

type ClientDocument = z.infer<typeof documentSchema>;

/** The rules for a document with valid fields, and the message where one is broken. */
const rules: readonly (readonly [string, (document: ClientDocument, id: string) => boolean])[] = [
  ["names another client_id than its own address", ({ client_id: named }, id) => named === id],
  [
    "asks for a way to prove itself that this service does not offer: token_endpoint_auth_method must be none",
    ({ token_endpoint_auth_method: method = "none" }) => method === "none",
  ],
  [
    "does not use authorization codes (grant_types)",
    ({ grant_types: grants = ["authorization_code"] }) => grants.includes("authorization_code"),
  ],
  [
    "does not use authorization codes (response_types)",
    ({ response_types: types = ["code"] }) => types.includes("code"),
  ],
];

/**
 * Returns what is wrong with an address as a client id (draft, section 3); undefined where it is
 * valid.
 */
function addressProblem(id: string): string | undefined {
  const url = URL.canParse(id) ? new URL(id) : undefined;
  if (url === undefined || id.length > charactersMax || id.includes("#"))
    return "is not an address without a fragment";
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  if (url.pathname === "/") return "must have a path";
  // Other spellings of the host name, default ports and dot segments would be further ids of the
  // same document.
  return url.href === id ? undefined : "must be written as it is called, without dot segments";
}

function readDocument(text: string, id: string): ClientDocument {
  const parsed = documentSchema.safeParse(asJson(text));
  if (!parsed.success) throw new ClientDocumentError(problemOf(parsed.error));
  const broken = rules.find(([, holds]) => !holds(parsed.data, id));
  if (broken !== undefined) throw new ClientDocumentError(broken[0]);
  for (const uri of parsed.data.redirect_uris) {
    const problem = redirectProblem(uri);
    if (problem !== undefined) throw new ClientDocumentError(`has a redirect URI that ${problem}`);
  }
  return parsed.data;
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ClientDocumentError("is not JSON");
  }
}

function problemOf({ issues: [issue] }: z.ZodError): string {
  const field = String(issue?.path[0] ?? "");
  if (field.startsWith("client_secret")) return "holds a secret, which is public there";
  return field === "" ? "is not a JSON object" : `has no valid ${field}`;
}

/**
 * Returns the client that a document describes. Its home page is shown only where it is on the host
 * that published the document.
 */
function clientOf(
  document: ClientDocument,
  { id, nowMs }: { id: string; nowMs: number },
): OauthClient {
  const { client_uri: home, redirect_uris: redirectUris } = document;
  const { host, origin } = new URL(id);
  return {
    id,
    name: cleanName(document.client_name).slice(0, 100) || host,
    redirectUris,
    clientUri:
      home !== undefined && URL.canParse(home) && new URL(home).origin === origin ? home : null,
    logoUri: null,
    applicationType:
      redirectUris.some(isNativeRedirect) || document.application_type === "native"
        ? "native"
        : "web",
    createdAtMs: nowMs,
    wasUsed: false,
    publishedBy: host,
  };
}

/** Returns for how many milliseconds a document is kept: by its `Cache-Control`, within bounds. */
function keptForMs(headers: Headers): number {
  const control = (headers.get("cache-control") ?? "").toLowerCase();
  if (/\bno-(?:store|cache)\b/.test(control)) return keptMs.min;
  const seconds = /\bmax-age=(\d{1,9})\b/.exec(control)?.[1];
  return seconds === undefined
    ? keptMs.normal
    : Math.min(Math.max(Number(seconds) * 1_000, keptMs.min), keptMs.max);
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > documentBytesMax)
      throw new ClientDocumentError(`has more than ${documentBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function assertDocument({ status, headers }: Response): void {
  if (status >= 300 && status < 400)
    throw new ClientDocumentError("redirects, which a description must not");
  if (status !== 200) throw new ClientDocumentError(`answered ${status}`);
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) {
    throw new ClientDocumentError("is not served as JSON");
  }
  if (headers.has("content-encoding")) throw new ClientDocumentError("is compressed");
}

interface Kept {
  client: OauthClient;
  untilMs: number;
}

/**
 * Reads the descriptions of clients whose id is an address
 * (draft-ietf-oauth-client-id-metadata-document): over TLS, from public addresses, without
 * redirects, cookies or credentials, with bounds on bytes, time and number. Only valid documents
 * are kept.
 */
export class ClientDocuments {
  private readonly guard: AddressGuard;
  private readonly clock: Clock;
  private readonly patienceMs: number;
  private readonly asked: NamedWindows;
  private readonly kept = new Map<string, Kept>();
  private readonly reading = new Map<string, Promise<OauthClient>>();

  constructor({
    guard,
    clock,
    patienceMs = normalPatienceMs,
  }: { guard: AddressGuard; clock: Clock; patienceMs?: number }) {
    this.guard = guard;
    this.clock = clock;
    this.patienceMs = patienceMs;
    this.asked = new NamedWindows(clock, minuteWindow, { namesMax: 10_000 });
  }

  /**
   * Returns whether a client id is an address. http is allowed only in the operator's own networks.
   */
  isDocumentId(id: string): boolean {
    return id.startsWith("https://") || (id.startsWith("http://") && this.guard.allowed.length > 0);
  }

  /**
   * Returns the client that an address describes. `userId` is the person who wants to connect it.
   * Throws `ClientDocumentError`.
   */
  async find(id: string, userId: string): Promise<OauthClient> {
    const problem = addressProblem(id);
    if (problem !== undefined) throw new ClientDocumentError(problem);
    const kept = this.kept.get(id);
    if (kept !== undefined && kept.untilMs > this.clock.nowMs()) return kept.client;
    if (!this.asked.tryAdd(userId, { limit: perPersonMax }))
      throw new ClientDocumentError("was asked for too often. Wait a minute");
    return this.reading.get(id) ?? this.read(id);
  }

  private read(id: string): Promise<OauthClient> {
    if (this.reading.size >= readingMax)
      throw new ClientDocumentError("has to wait: too many are being read. Try again");
    const reading = this.fetch(id).finally(() => this.reading.delete(id));
    this.reading.set(id, reading);
    return reading;
  }

  private async fetch(id: string): Promise<OauthClient> {
    const stop = new AbortController();
    try {
      const client = await withinTime(this.patienceMs, this.ask(id, stop.signal), undefined);
      if (client === undefined)
        throw new ClientDocumentError(`did not answer within ${this.patienceMs / 1_000} seconds`);
      return client;
    } catch (error) {
      throw failureOf(error);
    } finally {
      stop.abort();
    }
  }

  private async ask(id: string, signal: AbortSignal): Promise<OauthClient> {
    const headers = {
      accept: "application/json",
      "accept-encoding": "identity",
      "user-agent": `${brand.productName.toLowerCase()}-oauth`,
    };
    const response = await guardedFetch(
      id,
      { signal, headers, credentials: "omit", decompress: false },
      this.guard,
    );
    try {
      assertDocument(response);
      const client = clientOf(readDocument(await readText(response), id), {
        id,
        nowMs: this.clock.nowMs(),
      });
      this.keep(client, keptForMs(response.headers));
      return client;
    } finally {
      await response.body?.cancel().catch(() => undefined);
    }
  }

  private keep(client: OauthClient, forMs: number): void {
    this.kept.delete(client.id);
    const [oldest] = this.kept.keys();
    if (this.kept.size >= keptMax && oldest !== undefined) this.kept.delete(oldest);
    this.kept.set(client.id, { client, untilMs: this.clock.nowMs() + forMs });
  }
}

function failureOf(error: unknown): ClientDocumentError {
  if (error instanceof ClientDocumentError) return error;
  return new ClientDocumentError(
    error instanceof UnsafeTargetError ? error.message : "could not be reached",
  );
}
