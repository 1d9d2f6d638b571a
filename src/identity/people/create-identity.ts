import { kyselyAdapter } from "@better-auth/kysely-adapter";
import { passkey } from "@better-auth/passkey";
import { betterAuth } from "better-auth";
import { APIError } from "better-auth/api";
import { genericOAuth } from "better-auth/plugins/generic-oauth";
import { twoFactor } from "better-auth/plugins/two-factor";
import type { Kysely } from "kysely";
import { brand } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { newId, type IdPrefix } from "../../platform/kernel/ids.ts";
import {
  clientAddressHeader,
  identityPath,
  type Identity,
  type OidcProvider,
} from "./lazy-identity.ts";
import { passwordCharactersMax, passwordCharactersMin } from "./sign-in/password-bounds.ts";
import type { PasswordHasher } from "./sign-in/password-hasher.ts";
import type { PeopleTables } from "./people-tables.ts";

/** Options of signing in. */
export interface IdentityOptions {
  database: Kysely<PeopleTables>;
  secret: string;
  /** The URL at which people reach the service, without a trailing slash. */
  publicUrl: string;
  providers: readonly OidcProvider[];
  hasher: PasswordHasher;
  nowMs(): number;
  /**
   * Returns why a person who signs in at a provider may not have an account; undefined where they
   * may.
   */
  refusal(person: {
    email: string;
    emailVerified: boolean;
    providerId: string | undefined;
  }): Promise<string | undefined>;
  /** Called before a user's session begins; a `GatewayError` refuses it. */
  beforeSession(userId: string): Promise<void>;
  log(level: "debug" | "info" | "warn" | "error", message: string): void;
}

/** Seconds after its last use at which a session ends: a week. */
const sessionSeconds = 7 * 86_400;

const idPrefixes: Readonly<Record<string, IdPrefix>> = {
  user: "usr",
  session: "ses",
  account: "acct",
  verification: "vrf",
  passkey: "psk",
};

const times = { createdAt: "created_at", updatedAt: "updated_at" };
const ofUser = { userId: "user_id" };

const accountFields = {
  ...times,
  ...ofUser,
  accountId: "account_id",
  providerId: "provider_id",
  accessToken: "access_token",
  refreshToken: "refresh_token",
  idToken: "id_token",
  accessTokenExpiresAt: "access_token_expires_at",
  refreshTokenExpiresAt: "refresh_token_expires_at",
};

const passkeyFields = {
  ...ofUser,
  publicKey: "public_key",
  credentialID: "credential_id",
  deviceType: "device_type",
  backedUp: "backed_up",
  createdAt: "created_at",
};

const twoFactorFields = {
  ...ofUser,
  backupCodes: "backup_codes",
  failedVerificationCount: "failed_verification_count",
  lockedUntil: "locked_until",
};

/**
 * Creates the sign-in library on the gateway's tables. It looks people up, keeps their sessions and
 * writes the cookie. Reads the providers' metadata.
 */
export async function createIdentity(options: IdentityOptions): Promise<Identity> {
  const auth = betterAuth(libraryOptions(options));
  const { socialProviders } = await auth.$context;
  for (const provider of socialProviders) refuseWithoutIdToken(provider);
  return {
    handle: (request) => auth.handler(request),
    providerIds: socialProviders.map(({ id }) => id),
  };
}

/**
 * Requires an ID token, which proves who signed in (OpenID Connect Core 1.0, section 3.1.3.3). The
 * library would otherwise request the profile with the access token alone, which does not prove for
 * which client it was issued.
 */
function refuseWithoutIdToken<Tokens extends { idToken?: string | undefined }, Profile>(provider: {
  getUserInfo: (tokens: Tokens) => Promise<Profile | null>;
}): void {
  const ask = provider.getUserInfo.bind(provider);
  provider.getUserInfo = async (tokens) => (tokens.idToken === undefined ? null : ask(tokens));
}

function libraryOptions(options: IdentityOptions) {
  const { database, secret, publicUrl, hasher } = options;
  return {
    appName: brand.productName,
    baseURL: publicUrl,
    basePath: identityPath,
    secret,
    // Times are text and booleans are numbers on both engines, so that one migration serves both.
    // Transactions are off because the library hashes passwords inside them, and settlements would
    // wait.
    database: kyselyAdapter(database as never, { type: "sqlite", transaction: false }),
    trustedOrigins: [publicUrl],
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    logger: {
      log: (level: "debug" | "info" | "warn" | "error", message: string) =>
        options.log(level, message),
    },
    onAPIError: { errorURL: `${publicUrl}${identityPath}/error` },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: passwordCharactersMin,
      maxPasswordLength: passwordCharactersMax,
      password: {
        hash: (password: string) => hasher.hash(password),
        verify: (pair: { password: string; hash: string }) => hasher.verify(pair),
      },
    },
    user: { modelName: "users", fields: { ...times, emailVerified: "email_verified" } },
    session: {
      modelName: "user_sessions",
      fields: {
        ...times,
        ...ofUser,
        expiresAt: "expires_at",
        ipAddress: "ip_address",
        userAgent: "user_agent",
      },
      expiresIn: sessionSeconds,
      updateAge: 86_400,
    },
    account: {
      modelName: "user_accounts",
      fields: accountFields,
      encryptOAuthTokens: true,
      // An unverified address does not prove who created the account: only a signed-in person links
      // one.
      accountLinking: { enabled: true, disableImplicitLinking: true },
    },
    verification: {
      modelName: "user_verifications",
      fields: { ...times, expiresAt: "expires_at" },
      storeIdentifier: "hashed" as const,
    },
    plugins: libraryPlugins(options),
    advanced: advancedOptions(options),
    databaseHooks: hooks(options),
  };
}

const libraryPlugins = ({ publicUrl, providers }: IdentityOptions) => [
  passkey({
    rpID: new URL(publicUrl).hostname,
    rpName: brand.productName,
    origin: publicUrl,
    advanced: { webAuthnChallengeCookie: "passkey_challenge" },
    schema: { passkey: { modelName: "passkeys", fields: passkeyFields } },
  }),
  twoFactor({
    issuer: brand.productName,
    allowPasswordless: true,
    schema: {
      user: { fields: { twoFactorEnabled: "two_factor_enabled" } },
      twoFactor: { modelName: "two_factors", fields: twoFactorFields },
    },
  }),
  genericOAuth({ config: providers.map(libraryProvider) }),
];

const advancedOptions = (options: IdentityOptions) => ({
  // When on, the library names the cookie `__Secure-__session`.
  useSecureCookies: false,
  // The library's defaults depend on NODE_ENV.
  disableOriginCheck: false,
  disableCSRFCheck: false,
  cookiePrefix: "switchyard",
  defaultCookieAttributes: { secure: options.publicUrl.startsWith("https:") },
  cookies: { session_token: { name: brand.sessionCookie } },
  ipAddress: { ipAddressHeaders: [clientAddressHeader] },
  database: {
    validateSchema: false,
    generateId: ({ model }: { model: string }) =>
      newId(idPrefixes[model] ?? "vrf", options.nowMs()),
  },
});

const libraryProvider = (provider: OidcProvider) => ({
  providerId: provider.id,
  name: provider.name,
  discoveryUrl: `${provider.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
  clientId: provider.clientId,
  ...(provider.clientSecret === undefined ? {} : { clientSecret: provider.clientSecret }),
  scopes: [...provider.scopes],
  pkce: true,
  requireIdTokenVerification: true,
});

interface HookContext {
  params?: Record<string, string | undefined> | undefined;
}

const hooks = (options: IdentityOptions) => ({
  user: {
    create: {
      async before(user: { email: string; emailVerified: boolean }, context: HookContext | null) {
        const { email, emailVerified } = user;
        const refusal = await options.refusal({
          email: email.toLowerCase(),
          emailVerified,
          providerId: context?.params?.["id"],
        });
        if (refusal !== undefined)
          throw new APIError("FORBIDDEN", { message: refusal, code: "SIGN_UP_CLOSED" });
      },
    },
  },
  session: {
    create: {
      async before({ userId }: { userId: string }) {
        await options.beforeSession(userId).catch((error: unknown) => {
          throw error instanceof GatewayError
            ? new APIError("FORBIDDEN", { message: error.message, code: "BLOCKED" })
            : error;
        });
      },
    },
  },
});
