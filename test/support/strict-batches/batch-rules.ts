/** The vendors whose batch APIs have doubles. */
export type BatchVendor = "openai" | "anthropic" | "google";

/** A JSON object of which nothing is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** A call to a batch API, as its vendor reads it. */
export interface ReceivedCall {
  vendor: BatchVendor;
  path: string;
  method: string;
  headers: Headers;
  text: string;
  body: Fields;
  /** The lines of the input file of a batch that is created at OpenAI. */
  lines?: Fields[];
  /** The requests of a batch that is created. */
  requests: { customId: string; request: unknown }[];
  marker: string | undefined;
}

/** A fact about what a vendor's batch API refuses. */
interface BatchRule {
  id: string;
  vendor: BatchVendor;
  when(call: ReceivedCall): boolean;
  status: number;
  /** The page or the client from which it is known. */
  source: string;
}

const fieldsOf = (value: unknown): Fields => Object(value) as Fields;

/** The credentials that the vendors know: the operator's, and one of a workspace. */
const credentials: readonly string[] = ["upstream-secret", "own-secret-of-the-workspace"];

/** Returns the credential of a call, in the header that each vendor reads. */
export const credentialOf = ({ vendor, headers }: Pick<ReceivedCall, "vendor" | "headers">) =>
  vendor === "openai"
    ? (headers.get("authorization") ?? "").replace("Bearer ", "")
    : (headers.get(vendor === "anthropic" ? "x-api-key" : "x-goog-api-key") ?? "");

const isUnknown = (call: ReceivedCall): boolean => !credentials.includes(credentialOf(call));
const creates = ({ requests, method }: ReceivedCall): boolean =>
  method === "POST" && requests.length > 0;
const isRepeated = ({ requests }: ReceivedCall): boolean =>
  new Set(requests.map(({ customId }) => customId)).size < requests.length;

const openaiPage = "https://platform.openai.com/docs/guides/batch (2026-11)";
const anthropicPage =
  "https://docs.anthropic.com/en/docs/build-with-claude/batch-processing (2026-11)";
const googlePage = "https://ai.google.dev/gemini-api/docs/batch-api (2026-11)";

/** What the batch APIs refuse, one row a rule. */
export const batchRules: readonly BatchRule[] = [
  {
    id: "credential",
    vendor: "openai",
    when: isUnknown,
    status: 401,
    source: openaiPage,
  },
  {
    id: "purpose",
    vendor: "openai",
    when: ({ path, method, body }) =>
      path === "/files" && method === "POST" && body["purpose"] !== "batch",
    status: 400,
    source: openaiPage,
  },
  {
    id: "line",
    vendor: "openai",
    when: ({ body, lines = [] }) =>
      lines.some(
        ({ method, url, custom_id: id }) =>
          method !== "POST" || url !== body["endpoint"] || typeof id !== "string",
      ),
    status: 400,
    source: openaiPage,
  },
  {
    id: "endpoint",
    vendor: "openai",
    when: (call) =>
      creates(call) &&
      ![
        "/v1/responses",
        "/v1/chat/completions",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/moderations",
      ].includes(String(call.body["endpoint"])),
    status: 400,
    source: "npm openai 7.55, BatchCreateParams",
  },
  {
    id: "window",
    vendor: "openai",
    when: (call) => creates(call) && call.body["completion_window"] !== "24h",
    status: 400,
    source: openaiPage,
  },
  {
    id: "one-model",
    vendor: "openai",
    when: (call) =>
      creates(call) &&
      new Set(call.requests.map(({ request }) => fieldsOf(request)["model"])).size > 1,
    status: 400,
    source: openaiPage,
  },
  {
    id: "stream",
    vendor: "openai",
    when: ({ requests }) => requests.some(({ request }) => fieldsOf(request)["stream"] === true),
    status: 400,
    source: openaiPage,
  },
  { id: "unique", vendor: "openai", when: isRepeated, status: 400, source: openaiPage },
  {
    id: "credential",
    vendor: "anthropic",
    when: (call) => isUnknown(call) || call.headers.get("anthropic-version") === null,
    status: 401,
    source: anthropicPage,
  },
  {
    id: "custom-id",
    vendor: "anthropic",
    when: ({ requests }) =>
      requests.some(({ customId }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(customId)),
    status: 400,
    source: "npm @anthropic-ai/sdk 1.11, BatchCreateParams.Request",
  },
  {
    id: "stream",
    vendor: "anthropic",
    when: ({ requests }) => requests.some(({ request }) => fieldsOf(request)["stream"] === true),
    status: 400,
    source: anthropicPage,
  },
  {
    id: "max-tokens",
    vendor: "anthropic",
    when: ({ requests }) => requests.some(({ request }) => !("max_tokens" in fieldsOf(request))),
    status: 400,
    source: anthropicPage,
  },
  { id: "unique", vendor: "anthropic", when: isRepeated, status: 400, source: anthropicPage },
  {
    id: "credential",
    vendor: "google",
    when: isUnknown,
    status: 401,
    source: googlePage,
  },
  {
    id: "inline-size",
    vendor: "google",
    when: ({ text }) => text.length >= 20_000_000,
    status: 400,
    source: googlePage,
  },
  {
    id: "contents",
    vendor: "google",
    when: ({ requests }) =>
      requests.some(({ request }) => !Array.isArray(fieldsOf(request)["contents"])),
    status: 400,
    source: googlePage,
  },
  { id: "unique", vendor: "google", when: isRepeated, status: 400, source: googlePage },
];
