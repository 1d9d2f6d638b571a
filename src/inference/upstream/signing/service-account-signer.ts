import { type Clock, hourMs, minuteMs } from "../../../platform/kernel/clock.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { PostForm, RequestSigner } from "./request-signer.ts";

/** The dependencies of a service account signer. */
export interface ServiceAccountOptions {
  /** Reads the key's JSON text. Called once, when the first token is needed. */
  readKey: () => Promise<string>;
  clock: Clock;
  post: PostForm;
}

interface AccessToken {
  headers: Record<string, string>;
  expiresAtMs: number;
}

const jwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const scope = "https://www.googleapis.com/auth/cloud-platform";
/** Milliseconds before its expiry at which a token is renewed, while it still serves. */
const renewalLeadMs = 5 * minuteMs;
/**
 * Milliseconds before its expiry from which a token is not sent, since it has to arrive while it is
 * valid.
 */
const safetyMs = 10_000;

/**
 * Obtains access tokens of a Google service account: a signed assertion is exchanged for a token
 * that is valid for an hour (RFC 7523). A valid token is returned at once. Near its expiry a new
 * one is fetched in the background; requests wait only where there is no valid token, and then all
 * for the same one.
 */
export class ServiceAccountSigner implements RequestSigner {
  private key: Promise<SigningKey> | undefined;
  private token: AccessToken | undefined;
  private renewal: Promise<AccessToken> | undefined;

  constructor(private readonly options: ServiceAccountOptions) {}

  headersFor(): Promise<Record<string, string>> | Record<string, string> {
    const { token } = this;
    const leftMs = token === undefined ? 0 : token.expiresAtMs - this.options.clock.nowMs();
    if (token === undefined || leftMs <= safetyMs)
      return this.renew().then(({ headers }) => headers);
    // A failure is seen by the next request that needs the new token; the old one serves until
    // then.
    if (leftMs <= renewalLeadMs) this.renew().catch(() => undefined);
    return token.headers;
  }

  private renew(): Promise<AccessToken> {
    this.renewal ??= this.fetchToken().finally(() => {
      this.renewal = undefined;
    });
    return this.renewal;
  }

  private async fetchToken(): Promise<AccessToken> {
    this.key ??= loadKey(this.options.readKey);
    try {
      const key = await this.key;
      const nowMs = this.options.clock.nowMs();
      const form = new URLSearchParams({
        grant_type: jwtBearerGrant,
        assertion: await signClaim(key, nowMs),
      });
      return (this.token = readToken(
        await this.options.post(key.tokenUrl, form.toString()),
        nowMs,
      ));
    } catch (error) {
      if (error instanceof UpstreamFailure) throw error;
      // The key is read again for the next request, since it may have been fixed on disk.
      this.key = undefined;
      throw noToken(error instanceof Error ? error.message : String(error), error);
    }
  }
}

interface SigningKey {
  privateKey: CryptoKey;
  privateKeyId: string | undefined;
  clientEmail: string;
  tokenUrl: string;
}

async function loadKey(readKey: () => Promise<string>): Promise<SigningKey> {
  const { clientEmail, privateKey, privateKeyId, tokenUrl } = readServiceAccountKey(
    await readKey(),
  );
  const { importPKCS8 } = await import("jose");
  return {
    privateKey: await importPKCS8(privateKey, "RS256"),
    privateKeyId,
    clientEmail,
    tokenUrl,
  };
}

async function signClaim(
  { privateKey, privateKeyId, clientEmail, tokenUrl }: SigningKey,
  nowMs: number,
): Promise<string> {
  const { SignJWT } = await import("jose");
  const issuedAt = Math.floor(nowMs / 1_000);
  return new SignJWT({
    iss: clientEmail,
    scope,
    aud: tokenUrl,
    iat: issuedAt,
    exp: issuedAt + hourMs / 1_000,
  })
    .setProtectedHeader({
      alg: "RS256",
      typ: "JWT",
      ...(privateKeyId !== undefined && { kid: privateKeyId }),
    })
    .sign(privateKey);
}

function readToken({ status, text }: { status: number; text: string }, nowMs: number): AccessToken {
  const answer = objectOf(text);
  const {
    access_token: token,
    expires_in: lifetimeSeconds,
    error,
    error_description: description,
  } = answer;
  if (status !== 200 || typeof token !== "string") {
    throw noToken(
      `the token endpoint answered ${status}: ${String(description ?? error ?? "no reason given")}`,
    );
  }
  const lifetimeMs = typeof lifetimeSeconds === "number" ? lifetimeSeconds * 1_000 : hourMs;
  return { headers: { authorization: `Bearer ${token}` }, expiresAtMs: nowMs + lifetimeMs };
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : {};
  } catch {
    return {};
  }
}

const noToken = (why: string, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure("connect_failed", `no access token: ${why}`, { sent: false, cause });

/** The members of a Google service account's key that are used here. */
interface ServiceAccountKey {
  clientEmail: string;
  /** PKCS #8 in PEM. */
  privateKey: string;
  privateKeyId?: string;
  /** The URL at which signed assertions are exchanged for access tokens. */
  tokenUrl: string;
}

const googleTokenUrl = "https://oauth2.googleapis.com/token";

/**
 * Reads the JSON key file that Google Cloud issues. Throws an Error that says what is wrong without
 * repeating any of the text. Source: cloud.google.com/iam/docs/keys-create-delete (2026-11).
 */
export function readServiceAccountKey(text: string): ServiceAccountKey {
  let fields: Readonly<Record<string, unknown>> | null;
  try {
    fields = JSON.parse(text) as Readonly<Record<string, unknown>> | null;
  } catch {
    throw new Error("the service account key is not valid JSON");
  }
  const {
    type,
    client_email: clientEmail,
    private_key: privateKey,
    private_key_id: privateKeyId,
    token_uri: tokenUrl,
  } = fields ?? {};
  if (type !== "service_account") {
    throw new Error(
      `the key has the type ${JSON.stringify(type)}; a key of type "service_account" is needed`,
    );
  }
  if (typeof clientEmail !== "string" || typeof privateKey !== "string") {
    throw new Error("the service account key lacks client_email or private_key");
  }
  return {
    clientEmail,
    privateKey,
    ...(typeof privateKeyId === "string" && { privateKeyId }),
    tokenUrl: typeof tokenUrl === "string" ? tokenUrl : googleTokenUrl,
  };
}
