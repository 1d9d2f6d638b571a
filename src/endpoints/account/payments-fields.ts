import { z } from "zod";
import type { AccountCaller } from "../../account/keys/caller.ts";
import { centsFromUsd, usdFromCents } from "../../account/payments/cents.ts";
import type { Payments } from "../../account/payments/open-payments.ts";
import type { Buyer } from "../../account/payments/order.ts";
import { PaymentError } from "../../account/payments/payment-error.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/lib/errors.ts";

/** What routes of payments have in common. */
export const paymentRoute = {
  base: "api",
  counting: "at-door",
  tag: "Payments",
  encodeError: encodeContractError,
} as const;

/** Reading is for whoever may see the balance. */
export const readsPayments = { managementScope: "read:credits", session: true } as const;

/** Spending money is for owners and admins, and for keys that could make other keys anyway. */
export const changesPayments = { managementScope: "write:management-keys", session: true } as const;

/** An amount of USD. */
export const usdField = z
  .number("is required: USD as a number")
  .min(0, "must not be below 0")
  .max(1_000_000, "must be at most 1000000");

/** Whole cents of an amount. Throws `bad_request`. */
export function centsOf(usd: number, param: string): number {
  const cents = centsFromUsd(usd);
  if (cents !== undefined) return cents;
  throw new GatewayError("bad_request", `${param}: must be whole cents.`, { param });
}

/** Cents of credits that may be bought at once. Throws `bad_request`. */
export function creditCentsOf(
  usd: number,
  { settings: { creditCentsMin, creditCentsMax } }: Pick<Payments, "settings">,
): number {
  const cents = centsOf(usd, "amount");
  if (cents >= creditCentsMin && cents <= creditCentsMax) return cents;
  const [least, most] = [creditCentsMin, creditCentsMax].map(usdFromCents);
  throw new GatewayError("bad_request", `amount: must be from ${least} to ${most} USD.`, {
    param: "amount",
  });
}

/** Who buys, as the invoice names them. */
export const buyerOf = (caller: AccountCaller): Buyer => ({
  name: caller.workspace.name,
  ...(caller.kind === "session" ? { email: caller.user.email } : {}),
});

/** What a request to Stripe gives. Throws `service_unavailable` where it may be tried again, `bad_gateway` where not. */
export async function askingStripe<Answer>(request: Promise<Answer>): Promise<Answer> {
  try {
    return await request;
  } catch (cause) {
    if (!(cause instanceof PaymentError)) throw cause;
    const detail = cause.message;
    if (cause.kind === "unknown") {
      const message = "Stripe did not answer. Nothing was charged; try again.";
      throw new GatewayError("service_unavailable", message, {
        detail,
        cause,
        retryAfterSeconds: 5,
      });
    }
    throw new GatewayError("bad_gateway", "Stripe refused the request. Nothing was charged.", {
      detail,
      cause,
      retry: false,
    });
  }
}
