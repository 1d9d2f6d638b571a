import { z } from "zod";
import type { DocumentCredential } from "../../documents/jobs/ask-parser.ts";
import type { DocumentJob } from "../../documents/jobs/document-job-store.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { ParseRequest } from "../../documents/jobs/document-jobs.ts";
import { lazily } from "../../http/endpoint.ts";
import { parseJsonObject, readJsonText } from "../../http/bodies/read-body.ts";

/** The largest body (contract: "Limits"), in bytes. */
const parseBodyBytesMax = 256 * 1024;

const pagesHeader = brandHeader("Documents-Pages");
const chainHeader = brandHeader("Provider-Chain");
const sourceHeader = brandHeader("Credential-Source");

const pageRange = z.object({ start: z.int().min(1), end: z.int().min(1) });

/** Documents the body; `readParseRequest` checks the fields that the gateway itself reads. */
const bodySchema = z.lazy(() =>
  z.looseObject({
    source: z.union([
      z.looseObject({
        type: z.literal("url"),
        url: z.string().regex(/^https:\/\//),
        file_name: z.string(),
      }),
      z.looseObject({ type: z.enum(["workspace_file", "parse_result"]) }),
    ]),
    page_ranges: z
      .array(pageRange)
      .optional()
      .describe("Numbered from 1 and inclusive. Default: all pages."),
    parse_mode: z.enum(["low", "medium", "high"]).optional(),
    output: z.object({ formats: z.array(z.enum(["markdown", "text", "blocks"])) }).optional(),
    chunking: z.object({ strategy: z.enum(["none", "page", "section"]) }).optional(),
  }),
);

const jobSchema = lazily(() =>
  z.object({
    object: z.literal("document_job"),
    job_id: z.string(),
    status: z.enum(["queued", "running"]),
    created_at: z.string(),
  }),
);

/** Parses a document with the caller's own provider. */
export const documentsParse = defineEndpoint<Pick<Dependencies, "documents">>({
  method: "POST",
  path: "/documents/parse",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax: parseBodyBytesMax,
  summary: "Parse a document with your own provider key.",
  description:
    "Answers 200 with the provider's result, or 202 with a job while it is running. To fetch the result within a day, repeat the " +
    "request with the same Idempotency-Key, or with the job's id as the key if none was sent. Not charged here.",
  tag: "Inference",
  query: z.object({
    wait_seconds: z
      .string()
      .regex(/^\d{1,2}$/)
      .optional()
      .describe("Seconds to wait for the job before answering, 0 to 60."),
  }),
  headers: z.object({
    "Idempotency-Key": z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe(
        "The same key refers to the same job; with a different body the request answers 409.",
      ),
  }),
  answerHeaders: { [pagesHeader]: "Number of pages of the document, if known." },
  rawBody: bodySchema,
  response: () =>
    z.looseObject({
      result_type: z.string(),
      document: z.looseObject({ page_count: z.int() }),
    }),
  accepted: jobSchema,
  encodeError: encodeContractError,
  async handle(context, { documents: { jobs } }) {
    const request = await readParseRequest(context);
    const credential = jobs.credentialOf(request.workspaceId);
    if (credential === undefined) {
      const message =
        "Documents are parsed on your own provider key. Save one for a provider that parses documents with POST /auth/byok.";
      throw new GatewayError("byok_required", message);
    }
    const outcome = await jobs.parse(request);
    Object.assign(context.headers, servedBy(outcome.job, credential));
    if (outcome.kind === "failed") throw errorOf(outcome.job);
    if (outcome.kind === "under-way") return context.json(jobObject(outcome.job), { status: 202 });
    // The provider's own text, without parsing and serialising it again.
    return new Response(outcome.text, {
      headers: { "content-type": "application/json", ...context.headers },
    });
  },
});

function servedBy(
  { providerId, pages }: DocumentJob,
  credential: DocumentCredential,
): Record<string, string> {
  return {
    [chainHeader]: providerId ?? credential.providerId,
    [sourceHeader]: credential.source,
    ...(pages === null ? {} : { [pagesHeader]: String(pages) }),
  };
}

const jobObject = ({
  id,
  status,
  createdAtMs,
}: DocumentJob): z.input<ReturnType<typeof jobSchema>> => ({
  object: "document_job",
  job_id: id,
  status: status === "queued" ? "queued" : "running",
  created_at: isoOrNull(createdAtMs) ?? "",
});

function errorOf({ failure, providerId }: DocumentJob): GatewayError {
  if (failure === null) return new GatewayError("upstream_error", "The document provider failed.");
  const { code, message, final, retryAfterSeconds, upstreamStatus, upstreamMessage } = failure;
  return new GatewayError(code, message, {
    ...(code === "byok_required" ? {} : { fault: "upstream" }),
    retry: !final,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    metadata: {
      ...(providerId === null ? {} : { upstream_backend: providerId }),
      ...(upstreamStatus === null ? {} : { upstream_status: upstreamStatus }),
      ...(upstreamMessage === null ? {} : { upstream_message: upstreamMessage }),
    },
  });
}

/** The longest accepted `Idempotency-Key`, in characters. */
const idempotencyKeyCharactersMax = 255;

/** The longest wait (contract: "Limits"), in seconds. */
const waitSecondsMax = 60;

const invalid = (param: string, reason: string): GatewayError =>
  new GatewayError("invalid_request", `${param}: ${reason}`, { param });
const missing = (param: string): GatewayError =>
  new GatewayError("missing_required_fields", `${param}: is required.`, { param });

/** Reads a request to parse a document, leaving its body untouched. Throws `GatewayError`. */
async function readParseRequest(context: RequestContext): Promise<ParseRequest> {
  const { request, query } = context;
  const waitMs = waitSecondsOf(query.get("wait_seconds")) * 1_000;
  const idempotencyKey = idempotencyKeyOf(request.headers.get("idempotency-key"));
  const bodyText = await readJsonText(request, parseBodyBytesMax).catch((error: unknown) => {
    throw error instanceof GatewayError && error.code === "content_too_large"
      ? bodyTooLarge()
      : error;
  });
  checkSource(bodyOf(bodyText)["source"]);
  const { workspace } = context.caller as LlmKeyCaller;
  return { workspaceId: workspace.id, idempotencyKey, bodyText, waitMs };
}

const bodyTooLarge = (): GatewayError =>
  new GatewayError(
    "request_too_large",
    `The body is larger than the limit of ${parseBodyBytesMax} bytes. Name the document by its URL.`,
    {
      metadata: { limit_bytes: parseBodyBytesMax },
    },
  );

function bodyOf(text: string): Record<string, unknown> {
  try {
    return parseJsonObject(text);
  } catch (error) {
    throw error instanceof GatewayError
      ? new GatewayError("invalid_request", error.message, { cause: error })
      : error;
  }
}

function waitSecondsOf(text: string | null): number {
  if (text === null) return 0;
  const seconds = /^\d{1,3}$/.test(text) ? Number(text) : Infinity;
  if (seconds > waitSecondsMax)
    throw invalid("wait_seconds", `must be an integer from 0 to ${waitSecondsMax}.`);
  return seconds;
}

function idempotencyKeyOf(text: string | null): string | undefined {
  if (text === null) return undefined;
  if (text.length >= 1 && text.length <= idempotencyKeyCharactersMax) return text;
  throw invalid("Idempotency-Key", `must have 1 to ${idempotencyKeyCharactersMax} characters.`);
}

/** Sources that the provider knows by name. Their other members are the provider's concern. */
const namedSources: ReadonlySet<unknown> = new Set(["workspace_file", "parse_result"]);

/** Checks the form of a source. The gateway fetches nothing: the provider fetches the document. */
function checkSource(source: unknown): void {
  if (source === undefined || source === null) throw missing("source");
  if (typeof source !== "object" || Array.isArray(source))
    throw invalid("source", "must be an object.");
  const { type, url, file_name: fileName } = source as Record<string, unknown>;
  if (type === undefined) throw missing("source.type");
  if (namedSources.has(type)) return;
  if (type !== "url") throw invalid("source.type", "must be url, workspace_file or parse_result.");
  if (url === undefined || url === null) throw missing("source.url");
  const isSafeUrl =
    typeof url === "string" && /^https:\/\/[^/?#\s]/i.test(url) && URL.canParse(url);
  if (!isSafeUrl) throw invalid("source.url", "must be a URL that begins with https://.");
  if (fileName === undefined || fileName === null) throw missing("source.file_name");
  const hasExtension = typeof fileName === "string" && /[^.]\.[^./\\\s]+$/.test(fileName);
  if (!hasExtension)
    throw invalid("source.file_name", "must have an extension, such as report.pdf.");
}
