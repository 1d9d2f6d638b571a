import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { ParseRequest } from "../../documents/jobs/document-jobs.ts";
import { parseJsonObject, readJsonText } from "../../http/read-body.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";

/** Largest body (contract: "Limits"), in bytes. */
export const parseBodyBytesMax = 256 * 1024;

/** Longest `Idempotency-Key` that is taken, in characters. */
const idempotencyKeyCharactersMax = 255;

/** Longest wait (contract: "Limits"), in seconds. */
const waitSecondsMax = 60;

const invalid = (param: string, reason: string): GatewayError =>
  new GatewayError("invalid_request", `${param}: ${reason}`, { param });
const missing = (param: string): GatewayError =>
  new GatewayError("missing_required_fields", `${param}: is required.`, { param });

/** A request to parse a document, with its body untouched. Throws `GatewayError`. */
export async function readParseRequest(context: RequestContext): Promise<ParseRequest> {
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

/** Sources that the provider knows by name; what else stands in them is its own business. */
const namedSources: ReadonlySet<unknown> = new Set(["workspace_file", "parse_result"]);

/**
 * The gateway fetches nothing: it looks at a source's form, and its provider fetches the document.
 */
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
