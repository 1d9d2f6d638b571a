import { timeOrderedHex } from "../platform/kernel/ids.ts";
import type { BatchForm, BatchLine, BatchUsage } from "./batch.ts";

/** The answer to a line's request, or the error in place of one. */
export interface LineAnswer {
  status: number;
  requestId: string;
  /** The body as JSON text. */
  text: string;
}

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

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) ? value : 0;

/** Adds the tokens of an answer's body, in whichever dialect it is. */
export function addUsage(sum: BatchUsage, body: unknown): void {
  const usage = Object(Object(body).usage) as Record<string, unknown>;
  const input = Object(usage["input_tokens_details"] ?? usage["prompt_tokens_details"]);
  const output = Object(usage["output_tokens_details"] ?? usage["completion_tokens_details"]);
  sum.inputTokens += count(usage["input_tokens"] ?? usage["prompt_tokens"]);
  sum.cachedTokens += count(input["cached_tokens"] ?? usage["cache_read_input_tokens"]);
  sum.outputTokens += count(usage["output_tokens"] ?? usage["completion_tokens"]);
  sum.reasoningTokens += count(output["reasoning_tokens"]);
}
