import { z } from "zod";
import { numberFromText } from "./from-text.ts";

/** A decimal with at most two digits after the point, as it is written; both cents and hundredths of a percent fit. */
const hundredths = (minimum: number, maximum: number, what: string) => {
  const message = `expected ${what} from ${minimum} to ${maximum}, with two decimals at most`;
  const fits = (value: number): boolean => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6;
  return z.preprocess(
    numberFromText,
    z
      .number(message)
      .min(minimum, message)
      .max(maximum, message)
      .refine(fits, message)
      .transform((value) => Math.round(value * 100)),
  );
};

const line = z
  .string()
  .min(1, "expected a text that is not empty")
  .max(300, "expected at most 300 characters");

/** `sk_` and restricted `rk_` keys of Stripe, of the test mode or live. */
export const stripeKeySchema = z
  .string()
  .regex(
    /^(sk|rk)_(test|live)_\w+$/,
    "expected a secret key of Stripe: sk_test_..., sk_live_... or rk_...",
  );

/** The secret of a webhook endpoint of Stripe. */
export const stripeWebhookSecretSchema = z
  .string()
  .regex(/^whsec_\S+$/, "expected the secret of a webhook endpoint of Stripe: whsec_...");

/** Card payments. Amounts come out in cents, percentages in hundredths of a percent. */
export const paymentsSchema = z
  .strictObject({
    stripe: z
      .strictObject({ secret_key: stripeKeySchema, webhook_secret: stripeWebhookSecretSchema })
      .partial(),
    fee: z
      .strictObject({
        percent: hundredths(0, 50, "a percentage"),
        fixed: hundredths(0, 100, "an amount of USD"),
      })
      .partial(),
    top_up: z
      .strictObject({
        min: hundredths(1, 100_000, "an amount of USD"),
        max: hundredths(1, 100_000, "an amount of USD"),
      })
      .partial()
      .refine(
        ({ min = 500, max = 500_000 }) => min <= max,
        "expected a min that is not above max (5 and 5000 where they are not named)",
      ),
    seller: z.strictObject({
      name: line,
      address: z.array(line).max(8, "expected at most 8 lines").optional(),
      tax_id: line.optional(),
      tax_note: line.optional(),
    }),
  })
  .partial();

/** What a file says of payments. */
export type PaymentsFileSettings = z.output<typeof paymentsSchema>;

/** Who sells the credits, as it is printed on invoices. */
interface Seller {
  name: string;
  /** Lines of the address below the name. */
  address: readonly string[];
  /** Number under which the seller is known to its tax office; undefined prints none. */
  taxId: string | undefined;
  /** Sentence about taxes, such as why none are charged; undefined prints none. */
  taxNote: string | undefined;
}

/** What the operator settled about card payments. */
export interface ConfiguredPayments {
  readonly stripe: {
    /** Undefined switches payments off. */
    readonly secretKey: string | undefined;
    /** Undefined switches the webhook route off. */
    readonly webhookSecret: string | undefined;
    /** Where the API is asked in place of Stripe itself, such as a simulator. */
    readonly apiBase: string | undefined;
  };
  readonly currency: "usd";
  /** What is added to a top-up for its processing: 500 basis points are 5 % of the credits. */
  readonly fee: { readonly basisPoints: number; readonly fixedCents: number };
  /** Least and most credits of one top-up. */
  readonly creditCentsMin: number;
  readonly creditCentsMax: number;
  readonly seller: Seller | undefined;
}

/** Puts the variables, the file and the defaults together: 5 % plus 50 cents, and top-ups of 5 to 5,000 USD. */
export function assemblePayments(
  variables: ConfiguredPayments["stripe"],
  { stripe, fee, top_up: topUp, seller }: PaymentsFileSettings = {},
): ConfiguredPayments {
  return {
    stripe: {
      secretKey: variables.secretKey ?? stripe?.secret_key,
      webhookSecret: variables.webhookSecret ?? stripe?.webhook_secret,
      apiBase: variables.apiBase,
    },
    currency: "usd",
    fee: { basisPoints: fee?.percent ?? 500, fixedCents: fee?.fixed ?? 50 },
    creditCentsMin: topUp?.min ?? 500,
    creditCentsMax: topUp?.max ?? 500_000,
    seller: seller && {
      name: seller.name,
      address: seller.address ?? [],
      taxId: seller.tax_id,
      taxNote: seller.tax_note,
    },
  };
}
