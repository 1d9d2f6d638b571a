import { hkdfSync } from "node:crypto";
import type { Kysely } from "kysely";
import type { Clock } from "../../platform/kernel/clock.ts";
import type { CredentialDirectory } from "../keys/credential-directory.ts";
import type { SecretHasher } from "../keys/secret-hasher.ts";
import type { PlanId } from "../workspaces/workspace-store.ts";
import { Invitations } from "./links/invitations.ts";
import { InvitationMails } from "./links/invitation-mails.ts";
import { OwnerClaim } from "./links/owner-claim.ts";
import { UserLinks } from "./links/user-links.ts";
import { Organizations } from "./organizations.ts";
import { BreachedPasswords } from "./sign-in/breached-passwords.ts";
import { type HashCost, PasswordHasher } from "./sign-in/password-hasher.ts";
import { SessionStore } from "./sign-in/session-store.ts";
import { SessionReader } from "./sign-in/session-reader.ts";
import { SignUp, type SignUpPolicy, type SignUpReferrals } from "./sign-up.ts";
import { PendingSignUps } from "./pending-sign-ups.ts";
import type { Mailer } from "../../platform/notify/mailer.ts";
import type { IdentityOptions } from "./create-identity.ts";
import { LazyIdentity, type OidcProvider } from "./lazy-identity.ts";
import type { PeopleTables } from "./people-tables.ts";
import { Preferences } from "./preferences.ts";
import { Recovery } from "./recovery.ts";
import { SignInThrottle } from "./sign-in/sign-in-throttle.ts";
import { UserStore } from "./user-store.ts";
import { withTables } from "../../platform/storage/with-tables.ts";

/** The operator's settings for accounts. */
export interface PeopleSettings {
  signUp: SignUpPolicy;
  /** The plan of workspaces that people create. */
  plan: PlanId;
  /** The range API in which new passwords are looked up; absent turns the check off. */
  breachedPasswordsUrl?: string | undefined;
  oidc: readonly OidcProvider[];
}

/** Options of accounts, sessions and organisations. */
export interface PeopleOptions {
  database: Kysely<PeopleTables>;
  clock: Clock;
  encryptionKey: Uint8Array;
  hasher: SecretHasher;
  directory: CredentialDirectory;
  /** The id of the workspace that the first start created. */
  firstWorkspaceId: string;
  settings: PeopleSettings;
  /** The cost of a password's hash; absent uses the one that OWASP recommends. */
  passwordCost?: HashCost | undefined;
  /** The credits for referrals; absent where none are granted. */
  referrals: SignUpReferrals | undefined;
  /** Absent where no mail is sent. */
  mailer: Mailer | undefined;
  /** Returns where people reach the service, without a trailing slash. Called on first use. */
  publicUrl(): string;
  log(level: "debug" | "info" | "warn" | "error", message: string): void;
}

/** The parts of users, their sessions and their organisations. */
export interface People {
  settings: PeopleSettings;
  /** The secret that signs cookies. */
  secret: string;
  log: PeopleOptions["log"];
  identity: LazyIdentity;
  claim: OwnerClaim;
  signUp: SignUp;
  pendingSignUps: PendingSignUps;
  recovery: Recovery;
  passwords: PasswordHasher;
  breached: BreachedPasswords;
  throttle: SignInThrottle;
  sessions: SessionStore;
  reader: SessionReader;
  users: UserStore;
  preferences: Preferences;
  organizations: Organizations;
  invitations: Invitations;
  invitationMails: InvitationMails;
}

/**
 * Derives the secret that signs cookies (HKDF, RFC 5869). Another encryption key ends every
 * session.
 */
const signingSecret = (encryptionKey: Uint8Array): string =>
  Buffer.from(hkdfSync("sha256", encryptionKey, "", "switchyard session signing v1", 32)).toString(
    "base64",
  );

/** Builds accounts, sessions and organisations. The sign-in library is loaded on its first use. */
export async function openPeople(options: PeopleOptions): Promise<People> {
  const { database, clock, hasher, directory, settings, mailer, referrals } = options;
  const secret = signingSecret(options.encryptionKey);
  const passwords = new PasswordHasher(options.passwordCost);
  const breached = new BreachedPasswords({
    url: settings.breachedPasswordsUrl,
    onError: (error) => options.log("warn", `a password was not looked up: ${messageOf(error)}`),
  });
  const claim = await OwnerClaim.open({ database, hasher, clock });
  const invitations = new Invitations({ database, hasher, clock });
  const shared = {
    database,
    clock,
    invitations,
    plan: settings.plan,
    putWorkspace: directory.putWorkspace.bind(directory),
  };
  const signUp = new SignUp({
    ...shared,
    hasher: passwords,
    breached,
    claim,
    policy: settings.signUp,
    referrals,
    firstWorkspace: () => directory.workspace(options.firstWorkspaceId),
  });
  const sessions = new SessionStore(database);
  const users = new UserStore(database);
  const onMailError = (error: unknown): void =>
    options.log("error", `a link could not be sent: ${messageOf(error)}`);
  const recovery = recoveryOf(options, { passwords, breached, onMailError });
  return {
    pendingSignUps: new PendingSignUps({
      ...options,
      signUp,
      mayMail: (email) => recovery.mayMail(email),
      afterwards: (work) => recovery.afterwards(work),
    }),
    recovery,
    preferences: new Preferences({ database: withTables(database), clock }),
    settings,
    secret,
    log: options.log,
    claim,
    invitations,
    signUp,
    sessions,
    users,
    identity: lazyIdentity(options, {
      secret,
      passwords,
      claim,
      invitations,
      signUp,
      sessions,
      users,
    }),
    passwords,
    breached,
    organizations: new Organizations(shared),
    reader: new SessionReader({ database, secret, workspace: (id) => directory.workspace(id) }),
    throttle: new SignInThrottle({ database, hasher, clock, secret }),
    invitationMails: new InvitationMails({ mailer, clock, onMailError }),
  };
}

const recoveryOf = (
  options: PeopleOptions,
  {
    passwords,
    breached,
    onMailError,
  }: Pick<People, "passwords" | "breached"> & { onMailError(error: unknown): void },
): Recovery =>
  new Recovery({
    ...options,
    hasher: passwords,
    breached,
    links: new UserLinks(options),
    onVerified: () => options.referrals?.soon(),
    onMailError,
  });

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/**
 * Returns the sign-in library with the checks that it makes before it creates an account or a
 * session.
 */
const lazyIdentity = (
  { database, clock, settings, publicUrl, log }: PeopleOptions,
  parts: Pick<
    People,
    "secret" | "passwords" | "claim" | "invitations" | "signUp" | "sessions" | "users"
  >,
): LazyIdentity =>
  new LazyIdentity({
    providerCount: settings.oidc.length,
    nowMs: () => clock.nowMs(),
    load: async () =>
      (await import("./create-identity.ts")).createIdentity({
        database,
        secret: parts.secret,
        publicUrl: publicUrl(),
        providers: settings.oidc,
        hasher: parts.passwords,
        nowMs: () => clock.nowMs(),
        refusal: signUpByProviders({ ...parts, settings }),
        beforeSession: async (userId) => {
          await parts.users.noteSignIn(userId, clock.nowMs());
          await parts.signUp.ensureWorkspace(userId);
          await parts.sessions.removeEnded(clock.nowMs());
        },
        log,
      }),
  });

/**
 * Returns the check of who may get an account by signing in at a provider: people whom the
 * provider's entry, the policy or an invitation admits.
 */
const signUpByProviders =
  ({
    claim,
    invitations,
    settings,
  }: {
    claim: OwnerClaim;
    invitations: Invitations;
    settings: PeopleSettings;
  }): IdentityOptions["refusal"] =>
  async ({ email, emailVerified, providerId }) => {
    if (!claim.isClaimed) return "Sign-up opens when the owner account is claimed.";
    const provider = settings.oidc.find(({ id }) => id === providerId);
    if (provider === undefined) return "Accounts are made by invitation or at a provider.";
    if (provider.signUp || settings.signUp === "open") return undefined;
    if (settings.signUp === "invitation" && emailVerified && (await invitations.expects(email)))
      return undefined;
    return "This installation is closed for sign-up. Ask for an invitation.";
  };
