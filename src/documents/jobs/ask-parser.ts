import type { CatalogSnapshot, Provider } from "../../inference/catalog/model.ts";
import { errorDetails } from "../../inference/pipeline/attempt.ts";
import { AbortScope } from "../../inference/upstream/abort-scope.ts";
import {
  upstreamTarget,
  type UpstreamClient,
  type UpstreamResponse,
} from "../../inference/upstream/upstream-client.ts";
import { UpstreamFailure } from "../../inference/upstream/upstream-failure.ts";
import type { ErrorCode } from "../../platform/kernel/errors.ts";
import type { ParseFailure } from "./document-job-store.ts";

/**
 * The largest result that is relayed (contract: "Limits"), and the most that is read of a refusal,
 * in bytes.
 */
const resultBytesMax = 8 * 1024 * 1024;
const refusalBytesMax = 64 * 1024;

/** Seconds for which a provider is asked to hold a request until its job is done. */
const waitSeconds = 60;

/** A provider's answer: the result, that it is still working, or that it refuses. */
export type ParserAnswer =
  | { kind: "completed"; text: string; pages: number | null }
  | { kind: "running" }
  | { kind: "failed"; failure: ParseFailure };

/** A request to a provider that parses documents. */
export interface ParserQuestion {
  credential: DocumentCredential;
  /**
   * The id of the job. A provider that receives it again continues the job rather than starting it.
   */
  jobId: string;
  bodyText: string;
  signal: AbortSignal;
}

/**
 * Sends a document to a provider in the dialect `documents-parse`, which is this service's own:
 * `POST /documents/parse` with the client's body, 200 with the result, 202 while it is not ready.
 * Rejects only when `signal` has ended it.
 */
export async function askParser(
  upstream: UpstreamClient,
  question: ParserQuestion,
): Promise<ParserAnswer> {
  const { credential, jobId, bodyText, signal } = question;
  const { connectMs, idleMs, totalMs } = credential.timeouts;
  try {
    const response = await upstream.send({
      target: upstreamTarget(
        `${credential.baseUrl}/documents/parse?wait_seconds=${waitSeconds}`,
        {
          "content-type": "application/json",
          "user-agent": "switchyard",
          authorization: `Bearer ${credential.apiKey}`,
        },
        credential,
      ),
      body: bodyText,
      headers: { "idempotency-key": jobId },
      connectTimeoutMs: connectMs,
      // A result begins only when it is finished.
      timeouts: { firstTokenMs: totalMs, idleMs, totalMs },
      abortScope: new AbortScope(() => signal, { aborts: true }),
    });
    return await readAnswer(response);
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || signal.aborted) throw error;
    return { kind: "failed", failure: failureOfTransport(error) };
  }
}

async function readAnswer(response: UpstreamResponse): Promise<ParserAnswer> {
  const { status } = response;
  if (status === 200) return completed(await response.readText(resultBytesMax));
  const text = await response.readText(refusalBytesMax);
  return status === 202
    ? { kind: "running" }
    : { kind: "failed", failure: failureOfStatus(response, text) };
}

function completed(text: string): ParserAnswer {
  let result: unknown;
  try {
    result = JSON.parse(text);
  } catch {
    result = undefined;
  }
  if (typeof result !== "object" || result === null) {
    return {
      kind: "failed",
      failure: unanswered("bad_gateway", "The document provider's answer is not valid JSON."),
    };
  }
  const { document } = result as { document?: { page_count?: unknown } | null };
  const pages = document?.page_count;
  return {
    kind: "completed",
    text,
    pages: typeof pages === "number" && Number.isSafeInteger(pages) && pages >= 0 ? pages : null,
  };
}

const unanswered = (code: ErrorCode, message: string, final = false): ParseFailure => ({
  code,
  message,
  upstreamMessage: null,
  upstreamStatus: null,
  final,
});

function failureOfTransport({ fault }: UpstreamFailure): ParseFailure {
  if (fault === "response_too_large") {
    return unanswered(
      "upstream_response_too_large",
      `The result is larger than ${resultBytesMax} bytes. Ask for fewer pages.`,
      true,
    );
  }
  if (fault.endsWith("_timeout")) {
    return unanswered(
      "upstream_timeout",
      "The document provider did not answer in time. Retry with the same Idempotency-Key.",
    );
  }
  return unanswered(
    "bad_gateway",
    "The document provider could not be reached, or its answer could not be read.",
  );
}

/** The code for each status of the provider, and whether the same request would meet it again. */
const byStatus: Readonly<Record<number, readonly [code: ErrorCode, final: boolean]>> = {
  400: ["invalid_request", true],
  401: ["upstream_401", false],
  402: ["upstream_402", false],
  403: ["upstream_403", false],
  404: ["not_found", true],
  408: ["request_timeout", false],
  409: ["conflict", false],
  413: ["request_too_large", true],
  422: ["unprocessable_entity", true],
  429: ["rate_limit_exceeded", false],
  504: ["upstream_timeout", false],
};

function failureOfStatus({ status, headers }: UpstreamResponse, text: string): ParseFailure {
  const { message } = errorDetails(text);
  const isRefusal = status >= 400 && status < 500;
  const [code, final] =
    byStatus[status] ?? ([isRefusal ? "invalid_request" : "upstream_error", isRefusal] as const);
  const retryAfterSeconds = Number(headers["retry-after"]);
  return {
    code,
    final,
    upstreamStatus: status,
    upstreamMessage: message,
    message: message ?? `The document provider refused the request with status ${status}.`,
    ...(retryAfterSeconds > 0 && Number.isFinite(retryAfterSeconds)
      ? { retryAfterSeconds: Math.ceil(retryAfterSeconds) }
      : {}),
  };
}

/** The provider that parses a workspace's documents, and the key for it. */
export interface DocumentCredential {
  providerId: string;
  /** Without a trailing slash; `/documents/parse` is appended. */
  baseUrl: string;
  apiKey: string;
  /** Whose key it is. */
  source: "own_byok" | "platform";
  timeouts: { connectMs: number; idleMs: number; totalMs: number };
  /** The provider's own proxy, or `none`. */
  proxy?: string | undefined;
}

/** Returns the credential of a workspace; undefined when it has none. */
export type DocumentCredentialOf = (workspaceId: string) => DocumentCredential | undefined;

/**
 * Returns the caller's own key for a provider in the clear; undefined when the workspace has none
 * that may be used now.
 */
export type OwnKeyOf = (workspaceId: string, providerId: string) => string | undefined;

/**
 * Returns a lookup of document credentials: the workspace's own key at any provider that parses
 * documents, simulated ones last, or else a key that the operator has given such a provider. A
 * caller with neither gets an error, even where parsing could be simulated.
 */
export function documentCredentialLookup({
  catalog,
  ownKeyOf,
}: {
  catalog: () => CatalogSnapshot;
  ownKeyOf: OwnKeyOf;
}): DocumentCredentialOf {
  return (workspaceId) => {
    const parsers = [...catalog().providers.values()]
      .filter(({ dialects }) => dialects.documents === "documents-parse")
      .sort((one, other) => Number(one.simulated ?? false) - Number(other.simulated ?? false));
    for (const provider of parsers) {
      const own = ownKeyOf(workspaceId, provider.id);
      if (own !== undefined) return credentialAt(provider, { apiKey: own, source: "own_byok" });
    }
    const configured = parsers.find(
      ({ apiKey, simulated }) => simulated !== true && apiKey !== undefined && apiKey !== "",
    );
    return configured === undefined
      ? undefined
      : credentialAt(configured, { apiKey: configured.apiKey ?? "", source: "platform" });
  };
}

function credentialAt(
  { id, baseUrl, surfaceBaseUrls, timeouts, proxy }: Provider,
  key: Pick<DocumentCredential, "apiKey" | "source">,
): DocumentCredential | undefined {
  const address = surfaceBaseUrls?.documents ?? baseUrl;
  return address === undefined
    ? undefined
    : { providerId: id, baseUrl: address, timeouts, proxy, ...key };
}
