import { batchRules, type BatchVendor, type ReceivedCall } from "./batch-rules.ts";

/** A batch as a double keeps it. */
interface KeptBatch {
  id: string;
  vendor: BatchVendor;
  createdAt: string;
  marker: string | undefined;
  model: string;
  /** The requests by their custom ids. */
  requests: Map<string, unknown>;
  cancelled: boolean;
}

/** Doubles of the batch APIs of three vendors, on one port. They refuse what the vendors refuse. */
export interface StrictBatches {
  baseUrl(vendor: BatchVendor): string;
  /** The batches so far. */
  readonly batches: readonly KeptBatch[];
  /** The names of the rules by which calls were refused. */
  readonly refusals: string[];
  /** The calls so far, as `GET /batches/...`. */
  readonly calls: string[];
  /** Whether batches have ended; a batch that was cancelled has. */
  isDone: boolean;
  /** The share of requests, from the first, that run before a cancellation. */
  ranBeforeCancel: number;
  /** The lines of results after which a download stalls; undefined where it does not. */
  stallsAfterLines: number | undefined;
  /** Fails the next creation after it has taken the batch. */
  cutsAfterCreate: boolean;
  stop(): Promise<void>;
}

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields => Object(value) as Fields;

const textOf = (request: unknown): string => JSON.stringify(request);

const openaiAnswer = (model: unknown) => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model,
  choices: [{ index: 0, message: { role: "assistant", content: "night" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
});

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

const googleAnswer = {
  candidates: [
    { index: 0, content: { role: "model", parts: [{ text: "night" }] }, finishReason: "STOP" },
  ],
  usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 100, totalTokenCount: 1_100 },
};

/** Starts the doubles. A request that holds `fails` fails, one with `passing` fails for a while. */
export function startStrictBatches(): StrictBatches {
  const batches: KeptBatch[] = [];
  const files = new Map<string, string>();
  const deleted = new Set<string>();
  const doubles = {
    batches,
    refusals: [] as string[],
    calls: [] as string[],
    isDone: false,
    ranBeforeCancel: 0,
    stallsAfterLines: undefined as number | undefined,
    cutsAfterCreate: false,
  };
  const download = (text: string): Response => {
    const { stallsAfterLines: most } = doubles;
    if (most === undefined) return new Response(text);
    const some = `${text.split("\n").slice(0, most).join("\n")}\n`;
    return new Response(
      new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(some)) }),
    );
  };
  const hasEnded = (batch: KeptBatch): boolean => doubles.isDone || batch.cancelled;
  const ranOf = (batch: KeptBatch): [string, unknown][] => {
    const all = [...batch.requests];
    return batch.cancelled ? all.slice(0, Math.floor(all.length * doubles.ranBeforeCancel)) : all;
  };

  const shown: Record<BatchVendor, (batch: KeptBatch) => unknown> = {
    openai: (batch) => ({
      id: batch.id,
      object: "batch",
      status: batch.cancelled ? "cancelled" : hasEnded(batch) ? "completed" : "in_progress",
      input_file_id: `file-in-${batch.id}`,
      output_file_id: hasEnded(batch) ? `file-out-${batch.id}` : null,
      error_file_id: hasEnded(batch) ? `file-err-${batch.id}` : null,
      metadata: { gateway_batch: batch.marker },
    }),
    anthropic: (batch) => ({
      id: batch.id,
      type: "message_batch",
      processing_status: hasEnded(batch) ? "ended" : "in_progress",
      created_at: batch.createdAt,
      request_counts: {
        processing: hasEnded(batch) ? 0 : batch.requests.size,
        succeeded: hasEnded(batch) ? batch.requests.size : 0,
        errored: 0,
        canceled: 0,
        expired: 0,
      },
      results_url: "https://elsewhere.invalid/results",
    }),
    google: (batch) => ({
      name: batch.id,
      done: hasEnded(batch),
      metadata: {
        displayName: batch.marker,
        state: hasEnded(batch) ? "BATCH_STATE_SUCCEEDED" : "BATCH_STATE_RUNNING",
      },
      ...(hasEnded(batch) && {
        response: {
          inlinedResponses: {
            inlinedResponses: ranOf(batch).map(([key, request]) => ({
              metadata: { key },
              ...(textOf(request).includes("fails")
                ? { error: { code: 3, message: "no such thing" } }
                : { response: googleAnswer }),
            })),
          },
        },
      }),
    }),
  };

  function openaiLines(batch: KeptBatch, failed: boolean): string {
    return ranOf(batch)
      .filter(([, request]) => textOf(request).includes("fails") === failed)
      .map(([customId, request]) =>
        JSON.stringify({
          id: "batch_req_1",
          custom_id: customId,
          response: {
            status_code: failed ? 400 : 200,
            request_id: "r",
            body: failed
              ? { error: { message: "no such thing", type: "invalid_request_error" } }
              : openaiAnswer(fieldsOf(request)["model"]),
          },
          error: null,
        }),
      )
      .join("\n");
  }

  const anthropicLines = (batch: KeptBatch): string =>
    ranOf(batch)
      .map(([customId, request]) =>
        JSON.stringify({
          custom_id: customId,
          result: textOf(request).includes("fails")
            ? {
                type: "errored",
                error: { type: "error", error: { type: "invalid_request_error", message: "no" } },
              }
            : { type: "succeeded", message: anthropicAnswer(fieldsOf(request)["model"]) },
        }),
      )
      .join("\n");

  function created(vendor: BatchVendor, call: ReceivedCall): KeptBatch {
    const requests = new Map<string, unknown>();
    for (const { customId, request } of call.requests) requests.set(customId, request);
    const number = batches.length + 1;
    const batch: KeptBatch = {
      id: {
        openai: `batch_up${number}`,
        anthropic: `msgbatch_up${number}`,
        google: `batches/up${number}`,
      }[vendor],
      vendor,
      createdAt: new Date().toISOString(),
      marker: call.marker,
      model: call.model,
      requests,
      cancelled: false,
    };
    batches.push(batch);
    return batch;
  }

  async function readCall(
    vendor: BatchVendor,
    path: string,
    request: Request,
  ): Promise<ReceivedCall> {
    const text = await request.text();
    const call: ReceivedCall = {
      vendor,
      path,
      method: request.method,
      headers: request.headers,
      text,
      body: {},
      requests: [],
      marker: undefined,
      model: "",
    };
    if (vendor === "openai" && path === "/files") {
      const form = await new Response(text, { headers: request.headers }).formData();
      const file = form.get("file");
      call.body = {
        purpose: form.get("purpose"),
        file: file instanceof Blob ? await file.text() : file,
      };
      return call;
    }
    call.body = text === "" ? {} : fieldsOf(JSON.parse(text));
    if (request.method !== "POST") return call;
    if (vendor === "openai" && path === "/batches") {
      const lines = (files.get(String(call.body["input_file_id"])) ?? "")
        .split("\n")
        .filter(Boolean);
      call.lines = lines.map((line) => fieldsOf(JSON.parse(line)));
      call.requests = call.lines.map(({ custom_id, body }) => ({
        customId: String(custom_id),
        request: body,
      }));
      call.marker = String(fieldsOf(call.body["metadata"])["gateway_batch"]);
      call.model = String(fieldsOf(call.requests[0]?.request)["model"]);
    }
    if (vendor === "anthropic" && path === "/messages/batches")
      call.requests = (call.body["requests"] as Fields[]).map(({ custom_id, params }) => ({
        customId: String(custom_id),
        request: params,
      }));
    if (vendor === "google" && path.endsWith(":batchGenerateContent")) {
      const batch = fieldsOf(call.body["batch"]);
      const { requests } = fieldsOf(fieldsOf(batch["inputConfig"])["requests"]);
      call.marker = String(batch["displayName"]);
      call.model = /models\/([^:]+):/.exec(path)?.[1] ?? "";
      call.requests = (requests as Fields[]).map(({ request: one, metadata }) => ({
        customId: String(fieldsOf(metadata)["key"]),
        request: one,
      }));
    }
    return call;
  }

  function answer(vendor: BatchVendor, path: string, call: ReceivedCall): Response {
    const found = batches.find(({ id }) => path.includes(id.replace(/^.*\//, "")));
    if (vendor === "openai" && path.startsWith("/files")) {
      if (call.method === "POST") {
        const id = `file-in-batch_up${batches.length + 1}`;
        files.set(id, String(call.body["file"]));
        return Response.json({ id, object: "file" });
      }
      if (call.method === "DELETE") {
        deleted.add(path);
        return Response.json({ deleted: true });
      }
      return download(found === undefined ? "" : openaiLines(found, path.includes("file-err")));
    }
    const isCreation = call.method === "POST" && /batches$|batchGenerateContent$/.test(path);
    if (isCreation) {
      const batch = created(vendor, call);
      if (doubles.cutsAfterCreate) {
        doubles.cutsAfterCreate = false;
        return new Response("{}", { status: 502 });
      }
      return Response.json(shown[vendor](batch));
    }
    if (/batches$/.test(path)) {
      const list = batches.filter((batch) => batch.vendor === vendor).map(shown[vendor]);
      return Response.json(vendor === "google" ? { operations: list } : { data: list });
    }
    if (found === undefined)
      return Response.json({ error: { message: "not found" } }, { status: 404 });
    if (/[:/]cancel$/.test(path)) found.cancelled = true;
    if (path.endsWith("/results")) return download(anthropicLines(found));
    return Response.json(call.method === "DELETE" ? {} : shown[vendor](found));
  }

  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const [, vendor, rest] = /^\/(openai|anthropic|google)(\/.*)$/.exec(pathname) ?? [];
      if (vendor === undefined || rest === undefined) return new Response("", { status: 404 });
      const call = await readCall(vendor as BatchVendor, rest, request);
      doubles.calls.push(`${call.method} ${rest}`);
      const rule = batchRules.find((one) => one.vendor === vendor && one.when(call));
      if (rule === undefined) return answer(vendor as BatchVendor, rest, call);
      doubles.refusals.push(`${rule.vendor}/${rule.id}`);
      return Response.json({ error: { message: rule.id } }, { status: rule.status });
    },
  });
  return Object.assign(doubles, {
    baseUrl: (vendor: BatchVendor) => `http://127.0.0.1:${server.port}/${vendor}`,
    stop: () => server.stop(true),
  });
}
