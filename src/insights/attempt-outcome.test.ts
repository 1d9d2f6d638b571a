import { expect, test } from "bun:test";
import { attemptOf } from "../../test/support/generation-records.ts";
import { outcomeOf } from "./generation-record.ts";

/** Outcome, status and reason of an attempt, and what it says of its provider. */
const table = `
  served     200   -                  served
  cancelled  200   -                  neutral
  failed     200   -                  outage
  failed     -     upstream_error     outage
  failed     -     timeout            outage
  failed     200   upstream_error     outage
  failed     302   upstream_error     outage
  failed     400   upstream_error     neutral
  failed     401   credential_error   neutral
  failed     402   credential_error   neutral
  failed     403   credential_error   neutral
  failed     404   model_unavailable  outage
  failed     408   timeout            outage
  failed     410   upstream_error     outage
  failed     413   upstream_error     neutral
  failed     422   upstream_error     neutral
  failed     429   rate_limited       rationed
  failed     500   upstream_error     outage
  failed     503   upstream_error     outage
  failed     504   timeout            outage`;

test.each(
  table
    .trim()
    .split("\n")
    .map((row) => row.trim().split(/\s+/)),
)("%s with status %s and reason %s counts as %s", (outcome, status, reason, expected) => {
  const attempt = attemptOf({
    outcome: outcome as "served" | "failed" | "cancelled",
    status: status === "-" ? null : Number(status),
    reason: reason === "-" ? null : (reason ?? null),
  });
  expect(outcomeOf(attempt) as string).toBe(expected ?? "");
});
