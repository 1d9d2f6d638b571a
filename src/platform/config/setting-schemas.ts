import { isIP } from "node:net";
import { z } from "zod";
import { brand } from "../kernel/brand.ts";
import { isAccountable, nanoFromUsd } from "../kernel/money.ts";

/** Converts a number given as text, as an environment reference yields it. */
export const numberFromText = (value: unknown): unknown =>
  typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;

/** Converts a boolean given as text, likewise. */
export const booleanFromText = (value: unknown): unknown =>
  value === "true" ? true : value === "false" ? false : value;

function parsedUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

const isHttpUrl = (text: string): boolean => /^https?:$/.test(parsedUrl(text)?.protocol ?? "");

const isPostgresUrl = (text: string): boolean =>
  /^postgres(ql)?:$/.test(parsedUrl(text)?.protocol ?? "");

/** An http(s) URL without query and fragment; a trailing slash is dropped. */
export const httpUrlSchema = z
  .string()
  .refine(isHttpUrl, "expected an http(s) URL")
  .refine((text) => !/[?#]/.test(text), "expected a URL without query and fragment")
  .transform((text) => text.replace(/\/+$/, ""));

const inMemorySqlite = /^sqlite:(:memory:|file::memory:|.*[?&]mode=memory)/;

/**
 * `sqlite:PATH` or a Postgres URL. A ledger in memory is not offered, since it would lose what
 * clients paid for.
 */
export const storageUrlSchema = z
  .string()
  .refine(
    (text) => /^sqlite:./.test(text) || isPostgresUrl(text),
    "expected sqlite:PATH or a postgres:// URL",
  )
  .refine(
    (text) => !inMemorySqlite.test(text),
    "a database in memory would lose the ledger; name a file",
  );

const isBucketUrl = (text: string): boolean =>
  /^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[\w!.*'()/-]*)?$/.test(text);

/** The place of files: the path of a directory, or `s3://BUCKET/PREFIX`. */
export const filesUrlSchema = z
  .string()
  .min(1, "expected the path of a directory, or s3://BUCKET/PREFIX")
  .refine(
    (text) => (text.includes("://") ? isBucketUrl(text) : true),
    "expected the path of a directory, or s3://BUCKET/PREFIX",
  );

/** The Postgres URL of a replica. */
export const replicaUrlSchema = z.string().refine(isPostgresUrl, "expected a postgres:// URL");

/** The place of shared state: the memory of this process, or a Valkey or Redis server. */
export const sharedUrlSchema = z
  .string()
  .refine(
    (text) => text === "memory:" || /^rediss?:$/.test(parsedUrl(text)?.protocol ?? ""),
    "expected memory:, redis:// or rediss://",
  );

const isSentinelUrl = (text: string): boolean => {
  const url = parsedUrl(text);
  if (url === undefined || !/^rediss?:$/.test(url.protocol)) return false;
  return url.hostname !== "" && /^\/?$/.test(url.pathname) && !/[?#]/.test(text);
};

const loginOf = (text: string): string => {
  const { protocol, username, password } = parsedUrl(text) ?? {};
  return [protocol, username, password].join(" ");
};

/** Sentinels that name the primary of shared state. The same login is used for all of them. */
export const sentinelUrlsSchema = z
  .array(
    z
      .string()
      .refine(
        isSentinelUrl,
        "expected redis://HOST:26379 or rediss://USER:PASSWORD@HOST:26379 of a sentinel",
      ),
  )
  .min(1, "expected at least one sentinel")
  .superRefine((urls, context) => {
    const [first] = urls;
    const other = urls.findIndex((url) => first !== undefined && loginOf(url) !== loginOf(first));
    if (other < 0) return;
    context.addIssue({
      code: "custom",
      path: [other],
      message: "expected the scheme, user and password of the sentinel before it",
    });
  });

/** The same as one comma-separated text. */
export const sentinelListSchema = z
  .string()
  .transform((text) => text.split(",").map((part) => part.trim()))
  .pipe(sentinelUrlsSchema);

const isClickHouseUrl = (text: string): boolean =>
  /^clickhouse\+https?:$/.test(parsedUrl(text)?.protocol ?? "") &&
  parsedUrl(text)?.hostname !== "" &&
  !/[?#]/.test(text);

/** The URL of the archive. Its database is part of statements, so it has to be a plain name. */
export const archiveUrlSchema = z
  .string()
  .refine(
    (text) => text === "none" || isClickHouseUrl(text),
    "expected none or clickhouse+http(s)://USER:PASSWORD@HOST:PORT/DATABASE",
  )
  .refine(
    (text) => text === "none" || /^(\/\w*)?$/.test(parsedUrl(text)?.pathname ?? ""),
    "expected a database named by letters, digits and underscores",
  );

/** An address, or a range of addresses in CIDR notation (RFC 4632, RFC 4291 section 2.3). */
export const addressRangeSchema = z.string().refine((text) => {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return (
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
  );
}, "expected an IP address or a CIDR range");

const isSmtpUrl = (text: string): boolean =>
  URL.canParse(text) && /^smtps?:$/.test(new URL(text).protocol) && new URL(text).hostname !== "";

/** The server that mail is sent through. It may contain credentials, so it is never shown. */
export const smtpUrlSchema = z.string().refine(isSmtpUrl, "expected smtp://HOST or smtps://HOST");

/** The sender of mail: an address, or a name with the address in angle brackets. */
export const mailFromSchema = z
  .string()
  .regex(
    /^[^\r\n<>]*<?[^\s<>@]+@[^\s<>@]+>?$/,
    "expected an address such as Name <noreply@example.com>",
  );

/** The `mail` section of a file. */
export const mailSchema = z.strictObject({ url: smtpUrlSchema, from: mailFromSchema }).partial();

/** The `webhooks` section of a file. */
export const webhooksSchema = z
  .strictObject({ allowed_networks: z.array(addressRangeSchema) })
  .partial();

/** The operator's settings for mail. */
export interface ConfiguredMail {
  readonly url: string;
  readonly from: string;
}

/** Combines the two sources; undefined where no server is named. */
export function assembleMail(
  variables: { url: string | undefined; from: string | undefined },
  file: z.output<typeof mailSchema> = {},
  publicUrl: string | undefined,
): ConfiguredMail | undefined {
  const url = variables.url ?? file.url;
  if (url === undefined) return undefined;
  const host = publicUrl === undefined ? "localhost" : new URL(publicUrl).hostname;
  return { url, from: variables.from ?? file.from ?? `${brand.productName} <noreply@${host}>` };
}

const amountMessage = "expected an amount of USD from 0 to 10000";
const amount = z.preprocess(
  numberFromText,
  z.number(amountMessage).min(0, amountMessage).max(10_000, amountMessage),
);

const countMessage = "expected an integer from 1 to 1000000";

/** The `referrals` section of a file. */
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

/** The operator's settings for credits for referring a new user. */
export interface ConfiguredReferrals {
  /** Nano-USD for the workspace that referred the new user; 0 grants nothing. */
  readonly referrerNano: bigint;
  /** Nano-USD for the new user; 0 grants nothing. */
  readonly referredNano: bigint;
  readonly after: "first_top_up" | "sign_up";
  /** The most people for whom a workspace is granted credits. */
  readonly maximumPerWorkspace: number;
}

/**
 * Combines the file and the defaults; undefined, which grants nothing, where the file has no such
 * section.
 */
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

/**
 * Returns the schema of a decimal with at most two digits after the point, such as cents or
 * hundredths of a percent.
 */
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

/** Stripe keys `sk_` and restricted `rk_`, in test mode or live. */
export const stripeKeySchema = z
  .string()
  .regex(
    /^(sk|rk)_(test|live)_\w+$/,
    "expected a secret key of Stripe: sk_test_..., sk_live_... or rk_...",
  );

/** The secret of a Stripe webhook endpoint. */
export const stripeWebhookSecretSchema = z
  .string()
  .regex(/^whsec_\S+$/, "expected the secret of a webhook endpoint of Stripe: whsec_...");

/** Card payments. Amounts are converted to cents, and percentages to hundredths of a percent. */
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

/** The `payments` section of a file. */
export type PaymentsFileSettings = z.output<typeof paymentsSchema>;

/** The seller of the credits, as printed on invoices. */
interface Seller {
  name: string;
  /** The lines of the address below the name. */
  address: readonly string[];
  /** The seller's tax number; undefined prints none. */
  taxId: string | undefined;
  /** A sentence about taxes, such as why none are charged; undefined prints none. */
  taxNote: string | undefined;
}

/** The operator's settings for card payments. */
export interface ConfiguredPayments {
  readonly stripe: {
    /** Undefined turns payments off. */
    readonly secretKey: string | undefined;
    /** Undefined turns the webhook route off. */
    readonly webhookSecret: string | undefined;
    /** An API that is used in place of Stripe's, such as a simulator. */
    readonly apiBase: string | undefined;
  };
  readonly currency: "usd";
  /** The processing fee that is added to a top-up: 500 basis points are 5 % of the credits. */
  readonly fee: { readonly basisPoints: number; readonly fixedCents: number };
  /** The smallest and the largest credits of one top-up. */
  readonly creditCentsMin: number;
  readonly creditCentsMax: number;
  readonly seller: Seller | undefined;
}

/**
 * Combines the variables, the file and the defaults: 5 % plus 50 cents, and top-ups of 5 to 5,000
 * USD.
 */
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

const usdAmount = z
  .union([z.string(), z.number()])
  .refine(isAccountable, 'expected an amount of USD up to 9000000, such as "5" or 0.50');

/** The `customers` section of a file. */
export const customersSchema = z
  .strictObject({
    default_limit: usdAmount,
    per: z.enum(["day", "week", "month"], "expected day, week or month"),
    markup: z.preprocess(
      numberFromText,
      z
        .number("expected a share such as 0.2")
        .min(-0.9, "expected a share from -0.9 to 100")
        .max(100, "expected a share from -0.9 to 100"),
    ),
    most: z.preprocess(
      numberFromText,
      z.int("expected a whole number").min(1, "expected at least 1").max(10_000_000),
    ),
    stripe_meter: z.string().regex(/^[\w.-]{1,100}$/, "expected the event name of a meter"),
  })
  .partial()
  .refine(
    ({ default_limit: limit, per, markup }) =>
      limit !== undefined || (per === undefined && markup === undefined),
    "expected default_limit beside per and markup",
  );

/** The operator's rule for end customers. */
export interface ConfiguredCustomers {
  /** What each customer may use without a plan of its own; undefined counts only known ones. */
  readonly rule:
    | {
        readonly limitNanoUsd: bigint;
        readonly per: "day" | "week" | "month";
        readonly markup: number;
      }
    | undefined;
  /** The most customers of a workspace. */
  readonly most: number;
  /** The name of the meter events at Stripe; undefined reports none. */
  readonly stripeMeter: string | undefined;
}

/** Returns the settings of the section. */
export const assembleCustomers = (
  file: z.output<typeof customersSchema> = {},
): ConfiguredCustomers => ({
  rule:
    file.default_limit === undefined
      ? undefined
      : {
          limitNanoUsd: nanoFromUsd(file.default_limit) ?? 0n,
          per: file.per ?? "month",
          markup: file.markup ?? 0,
        },
  most: file.most ?? 100_000,
  stripeMeter: file.stripe_meter,
});

/** Plans whose tiers can be overridden, by their wire ids. */
export const planIds = ["free", "payg", "go", "pro", "pro_plus", "max", "enterprise"] as const;
