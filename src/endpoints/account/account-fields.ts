import { z } from "zod";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { KnownCaller } from "../../identity/keys/caller.ts";
import {
  passwordCharactersMax,
  passwordCharactersMin,
} from "../../identity/people/sign-in/password-bounds.ts";
import type { SessionCaller } from "../../identity/people/sign-in/sessions.ts";
import type { Workspace } from "../../identity/workspaces/workspace-store.ts";
import { badField } from "../../platform/kernel/errors.ts";

/** The largest body, in bytes, of a route of the account plane. */
export const accountBodyBytesMax = 256 * 1024;

/**
 * Returns the most characters of a text and the message for longer ones. A schema's own message is
 * about another mistake.
 */
export const atMost = (characters: number): [number, string] => [
  characters,
  `must have at most ${characters} characters`,
];

/**
 * Accepts only text that both databases keep as it is: Postgres rejects a zero byte, and lone
 * surrogates come back changed.
 */
const kept = (text: z.ZodString) =>
  text
    .regex(/^[^\0]*$/, "must not hold a zero byte")
    .refine((value) => value.isWellFormed(), "must not hold half a character");

/** Returns the schema of a text of at most this many characters that both databases keep. */
export const plainText = (charactersMax: number, problem?: string) =>
  kept(z.string(problem).max(...atMost(charactersMax)));

/** The name of a record. Surrounding spaces are removed. */
export const nameField = kept(
  z
    .string("is required and must be a text")
    .trim()
    .min(1, "is required and must not be empty")
    .max(...atMost(200)),
);

const momentProblem = "must be an ISO 8601 date or time such as 2027-01-31 or 2027-01-31T00:00:00Z";

/**
 * A moment (ISO 8601), of which Java's clients leave out seconds that are 0. Where it names no time
 * zone it is UTC, and a date is its midnight.
 */
export const momentField = z
  .union(
    [
      z.iso.datetime({ offset: true }),
      z.iso.datetime({ offset: true, precision: -1 }),
      z.iso.datetime({ local: true }),
      z.iso.date(),
    ],
    momentProblem,
  )
  .meta({ type: "string" });

/** A whole number of a query string. */
export const wholeNumberField = (
  [min, max]: readonly [min: number, max: number],
  problem = `must be a whole number from ${min} to ${max}`,
) => z.coerce.number(problem).int(problem).min(min, problem).max(max, problem);

const isLocalTime = /T[\d:.]+$/;

const parseMoment = (moment: string): number =>
  Date.parse(isLocalTime.test(moment) ? `${moment}Z` : moment);

/** Converts a point in time to milliseconds since the Unix epoch; null where there is none. */
export const momentMs = (moment: string | null | undefined): number | null =>
  moment ? parseMoment(moment) : null;

/** A moment of a query string, in milliseconds since the Unix epoch. */
export const momentMsField = momentField
  .transform(parseMoment)
  .refine((atMs) => atMs >= 0, momentProblem);

/**
 * Returns when a new key expires, in milliseconds; null where it does not. Throws `bad_request` for
 * a time in the past, since such a key would never work.
 */
export function expiryMs(moment: string | null | undefined, nowMs: number): number | null {
  const atMs = momentMs(moment);
  if (atMs === null || atMs > nowMs) return atMs;
  throw badField("expires_at", "must be in the future.");
}

/**
 * Parses a boolean of a query string; false where it is absent. Throws `bad_request` where it is
 * neither `true` nor `false`.
 */
export function truthIn(query: URLSearchParams, param: string): boolean {
  const text = query.get(param) ?? "false";
  if (text === "true" || text === "false") return text === "true";
  throw badField(param, "must be true or false.");
}

/** The header of answers that contain a secret. */
export const neverCached = { "cache-control": "no-store" } as const;

/** The declarations that routes of presets and of names share. */
export const forPresets = {
  base: "api",
  counting: "at-door",
  tag: "Presets",
  encodeError: encodeContractError,
} as const;
export const readsPresets = { managementScope: "read:presets", session: true } as const;
export const writesPresets = { managementScope: "write:presets", session: true } as const;

/** The declarations that every route for signed-in people shares. */
export const forSessions = {
  base: "api",
  access: { session: true },
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;

/** An address in the form in which it is stored: in lower case, without surrounding spaces. */
export const emailField = z
  .string("is required and must be a text")
  .trim()
  .toLowerCase()
  .max(...atMost(254))
  .pipe(z.email("must be an e-mail address"));

/** A new password, of which only the length is checked (NIST SP 800-63B, section 3.1.1.2). */
export const newPasswordField = z
  .string("is required and must be a text")
  .min(passwordCharactersMin, `must have at least ${passwordCharactersMin} characters`)
  .max(passwordCharactersMax, `must have at most ${passwordCharactersMax} characters`);

/** A password as it was typed. */
export const passwordField = z
  .string("is required and must be a text")
  .max(...atMost(passwordCharactersMax));

/** The fields of a new account with a password. */
export const newPersonFields = { name: nameField, email: emailField, password: newPasswordField };

/** Returns the person who calls a route for sessions alone. */
export const sessionOf = ({ caller }: RequestContext<unknown, SessionCaller>): SessionCaller =>
  caller;

/** Returns the workspace of a caller with a credential. */
export const workspaceOf = ({ caller }: RequestContext<unknown, KnownCaller>): Workspace =>
  caller.workspace;
