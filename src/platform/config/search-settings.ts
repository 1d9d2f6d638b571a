import { z } from "zod";
import { nanoFromUsd } from "../kernel/money.ts";
import { httpUrlSchema, numberFromText } from "./setting-schemas.ts";

const integer = (minimum: number, maximum: number) => {
  const message = `expected an integer from ${minimum} to ${maximum}`;
  return z.preprocess(numberFromText, z.int(message).min(minimum, message).max(maximum, message));
};

/** The `search` section of a file. */
export const searchSchema = z
  .strictObject({
    provider: z.enum(["searxng", "brave", "tavily", "exa"]),
    url: httpUrlSchema.optional(),
    api_key: z.string().min(1).optional(),
    price: z
      .union([z.string(), z.number()])
      .refine(
        (price) => (nanoFromUsd(price) ?? -1n) >= 0n,
        'expected an amount of USD for a search, such as "0.005"',
      )
      .optional(),
    results: integer(1, 20).optional(),
    timeout_ms: integer(100, 120_000).optional(),
  })
  .superRefine(({ provider, url, api_key: apiKey }, context) => {
    if (provider === "searxng" && url === undefined)
      context.addIssue({ code: "custom", path: ["url"], message: "is required for searxng" });
    if (provider !== "searxng" && apiKey === undefined)
      context.addIssue({
        code: "custom",
        path: ["api_key"],
        message: `is required for ${provider}`,
      });
  });

/** The search provider for models whose own provider has none. */
export interface ConfiguredSearch {
  readonly provider: "searxng" | "brave" | "tavily" | "exa";
  /** Absent where the provider has one address. */
  readonly url: string | undefined;
  readonly apiKey: string | undefined;
  /** The price of a search, in nano-USD. */
  readonly priceNanoUsd: bigint;
  /** The most pages of a search. */
  readonly results: number;
  readonly timeoutMs: number;
}

/** Returns the settings of the section; undefined where there is none. */
export const assembleSearch = (
  file: z.output<typeof searchSchema> | undefined,
): ConfiguredSearch | undefined =>
  file && {
    provider: file.provider,
    url: file.url,
    apiKey: file.api_key,
    priceNanoUsd: nanoFromUsd(file.price ?? 0) ?? 0n,
    results: file.results ?? 5,
    timeoutMs: file.timeout_ms ?? 10_000,
  };
