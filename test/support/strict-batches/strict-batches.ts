import { batchRules, type BatchVendor, credentialOf, type ReceivedCall } from "./batch-rules.ts";
import {
  fieldsOf,
  type KeptBatch,
  liveAnswer,
  plainAnswer,
  vendorDoubles,
} from "./vendor-doubles.ts";

/** Doubles of the batch APIs of three vendors, on one port. They refuse what the vendors refuse. */
export class StrictBatches {
  /** The batches so far. */
  readonly batches: KeptBatch[] = [];
  /** The names of the rules by which calls were refused. */
  readonly refusals: string[] = [];
  /** The calls so far, such as `GET /batches`. */
  readonly calls: string[] = [];
  /** Whether batches have ended; a batch that was cancelled has. */
  isDone = false;
  /** The share of requests, from the first, that run before a cancellation. */
  ranBeforeCancel = 0;
  /** The lines of results after which a download stalls; undefined where it does not. */
  stallsAfterLines: number | undefined;
  /** Changes the results that are downloaded; undefined where they come as they are. */
  changesResults: ((lines: string[]) => string) | undefined;
  /** Whether results are compressed. */
  isCompressed = false;
  /** Whether every call is answered as a chat completion is, by an address without a batch API. */
  isPlain = false;
  /** Rejects the next batch after it was taken. */
  rejectsNext = false;
  /** Fails the next creation after it has taken the batch. */
  cutsAfterCreate = false;
  private readonly files = new Map<string, string>();
  private readonly server = Bun.serve({ port: 0, fetch: (request) => this.serve(request) });

  baseUrl(vendor: BatchVendor): string {
    return `http://127.0.0.1:${this.server.port}/${vendor}`;
  }

  stop(): Promise<void> {
    return this.server.stop(true);
  }

  private async serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const [, vendor, path] = /^\/(openai|anthropic|google)(\/.*)$/.exec(pathname) ?? [];
    if (vendor === undefined || path === undefined) return new Response("", { status: 404 });
    if (this.isPlain) return Response.json(plainAnswer);
    const call = await this.read(request, { vendor: vendor as BatchVendor, path });
    this.calls.push(`${call.method} ${path}`);
    const rule = batchRules.find((one) => one.vendor === vendor && one.when(call));
    if (rule === undefined) return this.answer(call);
    this.refusals.push(`${rule.vendor}/${rule.id}`);
    return Response.json({ error: { message: rule.id } }, { status: rule.status });
  }

  private async read(
    request: Request,
    { vendor, path }: Pick<ReceivedCall, "vendor" | "path">,
  ): Promise<ReceivedCall> {
    const { method, headers } = request;
    const text = await request.text();
    const call = { vendor, path, method, headers, text, body: {}, requests: [], marker: undefined };
    if (path === "/files") {
      const form = await new Response(text, { headers }).formData();
      const file = form.get("file");
      const content = file instanceof Blob ? await file.text() : file;
      return { ...call, body: { purpose: form.get("purpose"), file: content } };
    }
    const read = { ...call, body: text === "" ? {} : fieldsOf(JSON.parse(text)) };
    return isCreation(read) ? vendorDoubles[vendor].read(read, this.files) : read;
  }

  private answer(call: ReceivedCall): Response {
    const { vendor, path, method } = call;
    if (path.startsWith("/files")) return this.answerFile(call);
    if (isCreation(call)) return this.create(call);
    if (path.endsWith("batches")) {
      const list = this.batches.filter(
        (batch) => batch.vendor === vendor && batch.credential === credentialOf(call),
      );
      const shown = list.map((batch) => vendorDoubles[vendor].shown(this.shownOf(batch)));
      return Response.json(vendor === "google" ? { operations: shown } : { data: shown });
    }
    const live = method === "POST" ? liveAnswer(path) : undefined;
    if (live !== undefined) return Response.json(live);
    const batch = this.batchIn(path);
    if (batch === undefined)
      return Response.json({ error: { message: "not found" } }, { status: 404 });
    if (/[:/]cancel$/.test(path)) batch.cancelled = true;
    const double = vendorDoubles[vendor];
    if (path.endsWith("/results")) return this.download(double.lines(this.shownOf(batch), false));
    return Response.json(method === "DELETE" ? {} : double.shown(this.shownOf(batch)));
  }

  private answerFile({ vendor, path, method, body }: ReceivedCall): Response {
    if (method === "DELETE") return Response.json({ deleted: true });
    if (method === "GET") {
      const batch = this.batchIn(path);
      if (batch === undefined) return new Response("", { status: 404 });
      const lines = vendorDoubles[vendor].lines(this.shownOf(batch), path.includes("file-err"));
      return this.download(lines);
    }
    const id = `file-in-batch_up${this.batches.length + 1}`;
    this.files.set(id, String(body["file"]));
    return Response.json({ id, object: "file" });
  }

  private create({ vendor, headers, requests, marker }: ReceivedCall): Response {
    const batch: KeptBatch = {
      id: vendorDoubles[vendor].idOf(this.batches.length + 1),
      vendor,
      credential: credentialOf({ vendor, headers }),
      createdAt: new Date().toISOString(),
      marker,
      requests: new Map(requests.map(({ customId, request }) => [customId, request])),
      cancelled: false,
      rejected: this.rejectsNext,
    };
    this.rejectsNext = false;
    this.batches.push(batch);
    if (!this.cutsAfterCreate)
      return Response.json(vendorDoubles[vendor].shown(this.shownOf(batch)));
    this.cutsAfterCreate = false;
    return new Response("{}", { status: 502 });
  }

  private batchIn(path: string): KeptBatch | undefined {
    return this.batches.find(({ id }) =>
      new RegExp(`${id.replace(/^.*\//, "")}(?!\\d)`).test(path),
    );
  }

  private shownOf(batch: KeptBatch) {
    const all = [...batch.requests];
    const most = batch.cancelled ? Math.floor(all.length * this.ranBeforeCancel) : all.length;
    return { batch, hasEnded: this.isDone || batch.cancelled, ran: all.slice(0, most) };
  }

  private download(text: string): Response {
    const { stallsAfterLines: most, changesResults } = this;
    if (this.isCompressed)
      return new Response(Bun.gzipSync(text), { headers: { "content-encoding": "gzip" } });
    if (most === undefined) return new Response(changesResults?.(text.split("\n")) ?? text);
    const some = `${text.split("\n").slice(0, most).join("\n")}\n`;
    const start = (controller: ReadableStreamDefaultController<Uint8Array>): void =>
      controller.enqueue(Buffer.from(some));
    return new Response(new ReadableStream({ start }));
  }
}

const isCreation = ({ method, path }: Pick<ReceivedCall, "method" | "path">): boolean =>
  method === "POST" && /(?:batches|batchGenerateContent)$/.test(path);
