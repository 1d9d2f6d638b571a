import type { LlmKeyCaller } from "../identity/keys/caller.ts";
import { timeOrderedHex } from "../platform/kernel/ids.ts";
import type { BatchLeg } from "../platform/kernel/models/batch-leg.ts";
import type { Batch, BatchForm, BatchLine } from "./batch.ts";
import type { resultRow } from "./line-store.ts";

/** The answer to a line's request, or the error in place of one. */
export interface LineAnswer {
  status: number;
  requestId: string;
  /** The body as JSON text. */
  text: string;
}

/** A line as an ordinary request of its creator's key. */
export interface LineRequest {
  caller: LlmKeyCaller;
  /** The batch of the line, which the record of the request names. */
  batch: Pick<Batch, "id" | "form" | "endpoint">;
  bodyText: string;
  /** Set where it travels in a provider's own batch. */
  leg?: BatchLeg | undefined;
  /**
   * Returns the row that is committed with the charge of the answer: its body, its trace id and
   * what it cost. Undefined for a request that is charged without an answer.
   */
  rowOf(answer: (LineAnswer & { costNano: number }) | undefined): ReturnType<typeof resultRow>;
}

/** The end of a line's request. */
export interface LineOutcome extends LineAnswer {
  /** Whether the same request may succeed later; a charged one is never sent again. */
  mayRetry: boolean;
  retryAfterMs: number | undefined;
  /** Whether the key or the workspace has no money left for it. */
  lacksMoney: boolean;
}

/** Runs a line's request through the gateway. */
export type RunLine = (request: LineRequest) => Promise<LineOutcome>;

/** Why a line was not run. */
export type NotRun = "expired" | "cancelled";

/** How a form writes the results of lines. */
interface LineForm {
  /** Writes a line with its answer. */
  answered(line: BatchLine, answer: LineAnswer, nowMs: number): string;
  /** Writes a line that was not run. */
  notRun(line: BatchLine, reason: NotRun, nowMs: number): string;
  /** Returns the answer's body in a line that succeeded. */
  bodyOf(line: Record<string, unknown>): unknown;
}

/** Returns JSON text without line ends, which some providers' answers have. */
const oneLine = (text: string): string =>
  /[\r\n]/.test(text) ? JSON.stringify(JSON.parse(text)) : text;

const notRunTexts: Record<NotRun, string> = {
  expired: "This request was not run before the batch expired.",
  cancelled: "This request was not run before the batch was cancelled.",
};

/** Source: https://platform.openai.com/docs/api-reference/batch/request-output */
const openai: LineForm = {
  answered({ customId }, { status, requestId, text }, nowMs) {
    const head = `"id":"batch_req_${timeOrderedHex(nowMs)}","custom_id":${JSON.stringify(customId)}`;
    return `{${head},"response":{"status_code":${status},"request_id":"${requestId}","body":${oneLine(text)}},"error":null}`;
  },
  notRun: ({ customId }, reason, nowMs) =>
    JSON.stringify({
      id: `batch_req_${timeOrderedHex(nowMs)}`,
      custom_id: customId,
      response: null,
      error: { code: `batch_${reason}`, message: notRunTexts[reason] },
    }),
  bodyOf: ({ response }) => Object(response).body,
};

/** Source: https://docs.anthropic.com/en/api/retrieving-message-batch-results */
const anthropic: LineForm = {
  answered({ customId }, { status, text }) {
    const isSuccess = status >= 200 && status < 300;
    const result = isSuccess
      ? `{"type":"succeeded","message":${oneLine(text)}}`
      : `{"type":"errored","error":${oneLine(text)}}`;
    return `{"custom_id":${JSON.stringify(customId)},"result":${result}}`;
  },
  notRun: ({ customId }, reason) =>
    JSON.stringify({
      custom_id: customId,
      result: { type: reason === "expired" ? "expired" : "canceled" },
    }),
  bodyOf: ({ result }) => Object(result).message,
};

/** How each form writes the results of lines. */
export const lineForms: Readonly<Record<BatchForm, LineForm>> = { openai, anthropic };

/** A batch, as far as its form. */
interface FormOf {
  form: BatchForm;
}

const failure = (
  { form }: FormOf,
  { status, code, type, message }: { status: number; code: string; type: string; message: string },
): LineAnswer => ({
  status,
  requestId: "",
  text: JSON.stringify(
    form === "anthropic"
      ? { type: "error", error: { type, message } }
      : { error: { code, message, type, param: null } },
  ),
});

/** Returns the answer to a line whose key may not be used any more. */
export const keyGone = (batch: FormOf): LineAnswer =>
  failure(batch, {
    status: 401,
    code: "invalid_api_key",
    type: "authentication_error",
    message: "The API key that created this batch was revoked, disabled or has expired.",
  });

/** Returns the answer to a line that was charged and not answered. */
export const chargedFailure = (batch: FormOf): LineAnswer =>
  failure(batch, {
    status: 502,
    code: "upstream_error",
    type: "api_error",
    message: "The provider charged for this request and returned no usable answer.",
  });

/** Returns the message of an error's body. */
export const messageIn = (text: string): string => {
  const { error } = Object(JSON.parse(text)) as { error?: { message?: string } };
  return error?.message ?? "the balance is used up.";
};
