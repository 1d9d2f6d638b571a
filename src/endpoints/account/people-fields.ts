import { z } from "zod";
import {
  passwordCharactersMax,
  passwordCharactersMin,
} from "../../account/people/password-length.ts";
import type { SessionCaller } from "../../account/people/session-caller.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { atMost, nameField } from "./account-fields.ts";

/** What every route for people who have signed in declares. */
export const forSessions = {
  base: "api",
  access: { session: true },
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;

/** An address as it is stored: in lower case, without spaces around it. */
export const emailField = z
  .string("is required and must be a text")
  .trim()
  .toLowerCase()
  .max(...atMost(254))
  .pipe(z.email("must be an e-mail address"));

/** A new password; its length is what counts (NIST SP 800-63B, section 3.1.1.2). */
export const newPasswordField = z
  .string("is required and must be a text")
  .min(passwordCharactersMin, `must have at least ${passwordCharactersMin} characters`)
  .max(passwordCharactersMax, `must have at most ${passwordCharactersMax} characters`);

/** A password as somebody typed it. */
export const passwordField = z
  .string("is required and must be a text")
  .max(...atMost(passwordCharactersMax));

/** What an account with a password is made of. */
export const newPersonFields = { name: nameField, email: emailField, password: newPasswordField };

/** The signed-in caller of a route that admits nobody else. */
export const sessionOf = ({ caller }: RequestContext<unknown>): SessionCaller =>
  caller as SessionCaller;
