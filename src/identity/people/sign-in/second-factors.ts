import { sql } from "kysely";
import { GatewayError } from "../../../platform/kernel/errors.ts";

/**
 * Is 1 where a password alone does not sign a user in: a code is asked for after it,
 * or there is none. Passkeys and OpenID providers are second factors of their own.
 */
export const hasSecondFactor = sql<number>`case when "user".two_factor_enabled = 1 or not exists (
  select 1 from user_accounts where user_accounts.user_id = "user".id and user_accounts.password is not null
) then 1 else 0 end`;

/** Returns the refusal of a person who has no second factor, where an organisation requires one. */
export const secondFactorMissing = (organization: string): GatewayError =>
  new GatewayError(
    "forbidden",
    `${organization} requires a second factor. Set one up in your account (POST /api/auth/two-factor/enable), then try again.`,
    { metadata: { reason: "second_factor_required" } },
  );
