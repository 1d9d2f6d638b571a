import { z } from "zod";
import { nanoFromUsd } from "../lib/money.ts";
import { numberFromText } from "./from-text.ts";

const amountMessage = "expected an amount of USD from 0 to 10000";
const amount = z.preprocess(
  numberFromText,
  z.number(amountMessage).min(0, amountMessage).max(10_000, amountMessage),
);

const countMessage = "expected an integer from 1 to 1000000";

/** What a file says of credits for bringing somebody. */
export const referralsSchema = z
  .strictObject({
    referrer_usd: amount.optional(),
    referred_usd: amount.optional(),
    after: z.enum(["first_top_up", "sign_up"]).optional(),
    maximum_per_workspace: z
      .preprocess(
        numberFromText,
        z.int(countMessage).min(1, countMessage).max(1_000_000, countMessage),
      )
      .optional(),
  })
  .refine(({ referrer_usd: referrer = 0, referred_usd: referred = 0 }) => referrer + referred > 0, {
    message: "expected referrer_usd or referred_usd above 0",
  });

/** What the operator settled about credits for bringing somebody. */
export interface ConfiguredReferrals {
  /** What the workspace that brought somebody is given; 0 gives nothing. */
  readonly referrerNano: bigint;
  /** What whoever came is given. */
  readonly referredNano: bigint;
  readonly after: "first_top_up" | "sign_up";
  /** How many people a workspace is given credits for. */
  readonly maximumPerWorkspace: number;
}

/** Puts the file and the defaults together; undefined, and nothing is given, where the file does not name them. */
export function assembleReferrals(
  file: z.output<typeof referralsSchema> | undefined,
): ConfiguredReferrals | undefined {
  return (
    file && {
      referrerNano: nanoFromUsd(file.referrer_usd ?? 0) ?? 0n,
      referredNano: nanoFromUsd(file.referred_usd ?? 0) ?? 0n,
      after: file.after ?? "first_top_up",
      maximumPerWorkspace: file.maximum_per_workspace ?? 20,
    }
  );
}
