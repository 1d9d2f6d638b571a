/** A JSON object of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** The vendors and servers whose refusals are known. */
export const vendorIds = [
  "openai",
  "azure",
  "anthropic",
  "amazon-bedrock",
  "google",
  "mistral",
  "deepseek",
  "moonshotai",
  "zai",
  "xai",
  "groq",
  "openrouter",
  "cohere",
  "fireworks",
  "together",
  "vllm",
  "llama-cpp",
] as const;

/** A vendor, by the slug of its provider. */
export type VendorId = (typeof vendorIds)[number];

/** The API of a request, by its path. */
export type Endpoint = "chat" | "completions" | "responses" | "messages" | "generate" | "converse";

/** A request as a strict vendor reads it. */
export interface VendorRequest {
  endpoint: Endpoint;
  /** The wire name of the model, from the body or the path. */
  model: string;
  body: Fields;
}

/** A fact about what a vendor refuses, and where and when it was seen. */
export interface VendorRule {
  /** Unique among the vendor's rules. */
  id: string;
  vendor: VendorId;
  endpoint: Endpoint;
  /** The wire names that it applies to. */
  models: RegExp;
  /** Returns whether the vendor refuses the request. */
  when(request: VendorRequest): boolean;
  /** The vendor's own status. */
  status: number;
  /** Returns the vendor's own body. */
  body(request: VendorRequest): unknown;
  /**
   * The evidence: a public page or report with the date on which it was written or read; `recalled`
   * where no page was read.
   */
  source: string;
  /** The least request that is refused. */
  violates: { model: string; body: Fields };
}

/** The members of a rule that its vendor's file does not repeat. */
type Told = Pick<VendorRule, "id" | "when" | "source" | "violates"> & {
  says: string | ((request: VendorRequest) => string);
  models?: RegExp;
  endpoint?: Endpoint;
  status?: number;
  param?: string;
  code?: string;
};

/** The form of a vendor's refusals. */
interface Vendor {
  vendor: VendorId;
  endpoint: Endpoint;
  /** Default 400. */
  status?: number;
  body(told: { message: string; param: string | null; code: string | null }): unknown;
}

/** Returns the rules of a vendor, each with what all of them share. */
export const rulesOf = (vendor: Vendor, told: readonly Told[]): VendorRule[] =>
  told.map(({ says, param = null, code = null, ...rule }) => ({
    vendor: vendor.vendor,
    endpoint: vendor.endpoint,
    models: /./,
    status: vendor.status ?? 400,
    ...rule,
    body: (request) =>
      vendor.body({
        message: typeof says === "string" ? says : says(request),
        param,
        code,
      }),
  }));
