import { z } from "zod";
import type { Referral } from "../../billing/referrals/referral-store.ts";
import type { Referrals } from "../../billing/referrals/referrals.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdSixDecimals } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  forSessions,
  plainText,
  sessionOf,
  workspaceOf,
} from "./account-fields.ts";

/** Returns the referrals. Throws `not_configured` where no referral credits are granted. */
function referralsOf({ referrals }: Pick<Dependencies, "referrals">): Referrals {
  if (referrals !== undefined) return referrals;
  const message =
    "No credits are given for referrals. The operator may set referrals in switchyard.yaml.";
  throw new GatewayError("not_configured", message);
}

const sum = (of: readonly bigint[]): number =>
  usdSixDecimals(of.reduce((total, each) => total + each, 0n));

const programSchema = lazily(() =>
  z.object({
    object: z.literal("referral_program"),
    code: z.string(),
    url: z.string(),
    after: z.enum(["first_top_up", "sign_up"]),
    referrer_usd: z.number(),
    referred_usd: z.number(),
    maximum: z.int(),
    signed_up: z.int(),
    pending: z.int(),
    rewarded: z.int(),
    earned: z.number(),
    referred: z.object({ status: z.enum(["pending", "rewarded"]), earned: z.number() }).nullable(),
  }),
);

/**
 * Returns how many people a workspace referred and the credits it got for them, without revealing
 * who they are.
 */
const broughtObject = (brought: readonly Referral[]) => {
  const rewarded = brought.filter(
    ({ rewarded: isRewarded, reward }) => isRewarded && (reward?.referrerNano ?? 0n) > 0n,
  );
  return {
    signed_up: brought.length,
    pending: brought.filter((each) => !each.rewarded).length,
    rewarded: rewarded.length,
    earned: sum(rewarded.map(({ reward }) => reward?.referrerNano ?? 0n)),
  };
};

const referredObject = ({
  rewarded,
  reward,
}: Referral): AnswerOf<typeof programSchema>["referred"] =>
  rewarded
    ? { status: "rewarded", earned: sum([reward?.referredNano ?? 0n]) }
    : { status: "pending", earned: 0 };

export const getReferrals = defineEndpoint({
  method: "GET",
  path: "/referrals",
  base: "api",
  access: { managementScope: "read:credits", session: true },
  counting: "at-door",
  tag: "Account",
  summary: "Show the referral program of the workspace.",
  description:
    "Returns the workspace's referral code, the number of referrals and the credits earned. When a person signs up with " +
    "the code, both workspaces receive monthly credits, once per person. Answers 501 if the operator grants no referral " +
    "credits.",
  response: programSchema,
  encodeError: encodeContractError,
  async handle(context, deps: Pick<Dependencies, "referrals" | "clock" | "publicUrl">) {
    const { store, settings } = referralsOf(deps);
    const { id } = workspaceOf(context);
    const [code, brought, bringing] = await Promise.all([
      store.codeOf(id, deps.clock.nowMs()),
      store.broughtBy(id),
      store.bringing(id),
    ]);
    return context.json({
      object: "referral_program",
      code,
      url: `${deps.publicUrl()}/sign-up?ref=${code}`,
      after: settings.after,
      referrer_usd: sum([settings.referrerNano]),
      referred_usd: sum([settings.referredNano]),
      maximum: settings.maximumPerWorkspace,
      ...broughtObject(brought),
      referred: bringing === undefined ? null : referredObject(bringing),
    });
  },
});

const acceptSchema = z.object({
  referral_code: plainText(50, "is required and must be a text").trim().min(1, "must not be empty"),
});

/** Records the referral code of a user who signed up through a provider. */
export const acceptReferral = defineEndpoint({
  ...forSessions,
  method: "POST",
  idempotent: true,
  path: "/referrals/accept",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Redeem a referral code after sign-up.",
  description:
    "For people who signed up with an OpenID provider; other sign-ups take referral_code directly. Possible within a " +
    "week of signing up, before the first top-up.",
  body: acceptSchema,
  response: () => z.object({ accepted: z.literal(true) }),
  async handle(context, deps: Pick<Dependencies, "people" | "referrals">) {
    const { throttle } = deps.people;
    const { id: userId, email } = sessionOf(context).user;
    await throttle.count({ address: context.clientAddress(), email, purpose: "mail" });
    await referralsOf(deps).accept(context.body.referral_code, { userId, email });
    context.changed = userId;
    return context.json({ accepted: true });
  },
});
