import type { BatchVendor, Fields, ReceivedCall } from "./batch-rules.ts";

/** A batch as a double keeps it. */
export interface KeptBatch {
  id: string;
  vendor: BatchVendor;
  /** The credential of the account that it is in. */
  credential: string;
  createdAt: string;
  marker: string | undefined;
  /** The requests by their custom ids. */
  requests: Map<string, unknown>;
  cancelled: boolean;
  /** Whether the vendor rejects the batch after it has taken it. */
  rejected: boolean;
}

/** A batch at the moment when it is shown. */
interface ShownBatch {
  batch: KeptBatch;
  hasEnded: boolean;
  /** The requests that were run, with their custom ids. */
  ran: readonly (readonly [string, unknown])[];
}

/** How one vendor reads the creation of a batch, and shows it. */
interface VendorDouble {
  idOf(number: number): string;
  /** Returns the call with the requests of a batch that is created. */
  read(call: ReceivedCall, files: ReadonlyMap<string, string>): ReceivedCall;
  shown(batch: ShownBatch): unknown;
  /** Returns the lines of a download; `failed` chooses the file of errors where there are two. */
  lines(batch: ShownBatch, failed: boolean): string;
}

export const fieldsOf = (value: unknown): Fields => Object(value) as Fields;

const mustFail = (request: unknown): boolean => JSON.stringify(request).includes("fails");

/** Returns the tokens of a request: those of its words, where it has thousands. */
const tokensOf = (request: unknown): number =>
  Math.max(1_000, JSON.stringify(request).split("word ").length - 1);

const openaiAnswer = (model: unknown, tokens = 1_000) => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model,
  choices: [{ index: 0, message: { role: "assistant", content: "night" }, finish_reason: "stop" }],
  usage: { prompt_tokens: tokens, completion_tokens: 100, total_tokens: tokens + 100 },
});

/** A chat completion outside of a batch. */
export const plainAnswer = openaiAnswer("night-1");

/** Returns the answer to a request outside of a batch; undefined where the path is of no such. */
export function liveAnswer(path: string): unknown {
  if (path.endsWith("/chat/completions")) return plainAnswer;
  if (path.endsWith("/messages")) return anthropicAnswer("night-1");
  return path.endsWith(":generateContent") ? googleAnswer() : undefined;
}

const openai: VendorDouble = {
  idOf: (number) => `batch_up${number}`,
  read(call, files) {
    const text = files.get(String(call.body["input_file_id"])) ?? "";
    const lines = text
      .split("\n")
      .filter(Boolean)
      .map((line) => fieldsOf(JSON.parse(line)));
    return {
      ...call,
      lines,
      requests: lines.map(({ custom_id: id, body }) => ({ customId: String(id), request: body })),
      marker: String(fieldsOf(call.body["metadata"])["gateway_batch"]),
    };
  },
  shown({ batch: { id, marker, cancelled, rejected }, hasEnded }) {
    const hasFiles = hasEnded && !rejected;
    const code = "token_limit_exceeded";
    return {
      id,
      object: "batch",
      status: rejected
        ? "failed"
        : cancelled
          ? "cancelled"
          : hasEnded
            ? "completed"
            : "in_progress",
      errors: rejected ? { object: "list", data: [{ code, message: "of org-secret" }] } : null,
      input_file_id: `file-in-${id}`,
      output_file_id: hasFiles ? `file-out-${id}` : null,
      error_file_id: hasFiles ? `file-err-${id}` : null,
      metadata: { gateway_batch: marker },
    };
  },
  lines: ({ ran }, failed) =>
    ran
      .filter(([, request]) => mustFail(request) === failed)
      .map(([customId, request]) => {
        const error = { error: { message: "no such thing", type: "invalid_request_error" } };
        const { model } = fieldsOf(request);
        const body = failed ? error : openaiAnswer(model, tokensOf(request));
        const response = { status_code: failed ? 400 : 200, request_id: "r", body };
        return JSON.stringify({ id: "batch_req_1", custom_id: customId, response, error: null });
      })
      .join("\n"),
};

const anthropicAnswer = (model: unknown) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model,
  content: [{ type: "text", text: "night" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 1_000, output_tokens: 100, service_tier: "batch" },
});

const anthropic: VendorDouble = {
  idOf: (number) => `msgbatch_up${number}`,
  read: (call) => ({
    ...call,
    requests: (call.body["requests"] as Fields[]).map(({ custom_id: id, params }) => ({
      customId: String(id),
      request: params,
    })),
  }),
  shown: ({ batch: { id, createdAt, requests }, hasEnded }) => ({
    id,
    type: "message_batch",
    processing_status: hasEnded ? "ended" : "in_progress",
    created_at: createdAt,
    request_counts: {
      processing: hasEnded ? 0 : requests.size,
      succeeded: hasEnded ? requests.size : 0,
      errored: 0,
      canceled: 0,
      expired: 0,
    },
    results_url: "https://elsewhere.invalid/results",
  }),
  lines: ({ ran }) =>
    ran
      .map(([customId, request]) => {
        const error = { type: "error", error: { type: "invalid_request_error", message: "no" } };
        const result = mustFail(request)
          ? { type: "errored", error }
          : { type: "succeeded", message: anthropicAnswer(fieldsOf(request)["model"]) };
        return JSON.stringify({ custom_id: customId, result });
      })
      .join("\n"),
};

const googleAnswer = (tokens = 1_000) => ({
  candidates: [
    { index: 0, content: { role: "model", parts: [{ text: "night" }] }, finishReason: "STOP" },
  ],
  usageMetadata: {
    promptTokenCount: tokens,
    candidatesTokenCount: 100,
    totalTokenCount: tokens + 100,
  },
});

const google: VendorDouble = {
  idOf: (number) => `batches/up${number}`,
  read(call) {
    const batch = fieldsOf(call.body["batch"]);
    const { requests } = fieldsOf(fieldsOf(batch["inputConfig"])["requests"]);
    return {
      ...call,
      marker: String(batch["displayName"]),
      requests: (requests as Fields[]).map(({ request, metadata }) => ({
        customId: String(fieldsOf(metadata)["key"]),
        request,
      })),
    };
  },
  shown({ batch: { id, marker, rejected }, hasEnded, ran }) {
    if (rejected)
      return {
        name: id,
        done: true,
        metadata: { displayName: marker, state: "BATCH_STATE_FAILED" },
        error: { code: 8, message: "of project-secret" },
      };
    const inlinedResponses = ran.map(([key, request]) => ({
      metadata: { key },
      ...(mustFail(request)
        ? { error: { code: 3, message: "no such thing" } }
        : { response: googleAnswer(tokensOf(request)) }),
    }));
    const state = hasEnded ? "BATCH_STATE_SUCCEEDED" : "BATCH_STATE_RUNNING";
    return {
      name: id,
      done: hasEnded,
      metadata: { displayName: marker, state },
      ...(hasEnded && { response: { inlinedResponses: { inlinedResponses } } }),
    };
  },
  lines: () => "",
};

/** The doubles of the vendors' batch APIs. */
export const vendorDoubles: Readonly<Record<BatchVendor, VendorDouble>> = {
  openai,
  anthropic,
  google,
};
