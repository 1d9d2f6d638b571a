import type { ProviderBatchApi } from "../../inference/pipeline/batches/provider-batches.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { GatheredRequest } from "../../platform/kernel/models/batch-leg.ts";
import type { Batch, BatchLine } from "../batch.ts";
import { type LineStore, resultRow } from "../line-store.ts";
import type { ProviderPart } from "./provider-batch-store.ts";
import { readBody } from "../input-reader.ts";
import { RunsHereError, type GatherParts } from "./gather-input.ts";

/** Lines that are noted in the database at once. */
const linesAtOnce = 200;

/** The most batches of a provider that one batch is divided into. */
const partsMax = 32;

/** Returns the id by which a provider knows a line. */
const lineIdOf = (batchId: string, line: number): string => `${batchId.slice(-16)}-${line}`;

/** A line, and its request as the provider is sent it. */
interface Gathered {
  line: BatchLine;
  request: GatheredRequest;
}

type PartFacts = Pick<ProviderPart, "marker" | "account" | "path" | "upstreamModel" | "firstLine">;

/** The content of one batch of the provider, which is stored while it is gathered. */
class PartInput {
  readonly headers: Record<string, string> = {};
  private readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  private readonly stored: Promise<string>;
  private lastLine: number;
  private requests = 0;
  private bytes = 0;

  constructor(
    private readonly api: ProviderBatchApi,
    private readonly facts: PartFacts,
    store: GatherParts["store"],
  ) {
    this.lastLine = facts.firstLine;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.writer = writable.getWriter();
    this.writer.closed.catch(() => undefined);
    this.stored = store(readable);
    this.stored.catch((error: unknown) => this.discard(error));
  }

  /** Adds a request. Returns false where the provider takes no more in one batch. */
  async add(batchId: string, { line, request }: Gathered): Promise<boolean> {
    const { api } = this;
    const { path } = this.facts;
    const customId = lineIdOf(batchId, line.line);
    const before = this.requests === 0 ? api.frame.head : api.frame.between;
    const piece = Buffer.from(before + api.write({ customId, path, text: request.text }));
    if (this.requests + 1 > api.requestsMax) return false;
    if (this.bytes + piece.byteLength > api.bytesMax) {
      if (this.requests > 0) return false;
      throw new RunsHereError("A request is larger than a batch of the provider may be.");
    }
    for (const [name, value] of Object.entries(request.headers)) this.addHeader(name, value);
    this.requests += 1;
    this.bytes += piece.byteLength;
    this.lastLine = line.line;
    await this.writer.write(piece);
    return true;
  }

  /** Returns what is to be handed to the provider, once it is stored. */
  async end(): Promise<ProviderPart> {
    await this.writer.write(Buffer.from(this.api.frame.tail));
    await this.writer.close();
    const { headers, lastLine, requests } = this;
    const inputFileId = await this.stored;
    const sent = { headers, lastLine, requests, inputFileId };
    const begun = { job: null, submittedAtMs: 0, hasAnswered: false };
    return { ...this.facts, ...sent, ...begun, state: "waiting" };
  }

  /** Ends the storing. Returns the id of the file where it was complete. */
  async discard(error: unknown): Promise<string | undefined> {
    await this.writer.abort(error).catch(() => undefined);
    return this.stored.catch(() => undefined);
  }

  /** Lists of features are joined; any other header has to be the same for all. */
  private addHeader(name: string, value: string): void {
    const known = this.headers[name];
    if (known === undefined || known === value) this.headers[name] = value;
    else if (name === "anthropic-beta")
      this.headers[name] = [...new Set([...known.split(","), ...value.split(",")])].join(",");
    else throw new RunsHereError(`The requests differ in the header ${name}.`);
  }
}

/** Prepares the lines of a batch for the batches of one provider, as they are read. */
export class GatheredInput {
  ceilingNano = 0n;
  private readonly batch: Batch;
  private readonly caller: LlmKeyCaller;
  private target:
    | { provider: string; account: string | null; api: ProviderBatchApi; path: string }
    | undefined;
  private readonly begun: PartInput[] = [];
  /** The parts that take further lines, by the model of those. */
  private readonly open = new Map<string | null, PartInput>();

  constructor(
    private readonly parts: GatherParts,
    { batch, caller }: { batch: Batch; caller: LlmKeyCaller },
  ) {
    this.batch = batch;
    this.caller = caller;
  }

  /** The provider of the lines, known once they are gathered. Throws `RunsHereError`. */
  get provider(): string {
    if (this.target === undefined) throw new RunsHereError("No line could be sent.");
    return this.target.provider;
  }

  /**
   * Stores the requests for the provider, divided by model where its batches have one each, and by
   * size. Rejects with `RunsHereError`, and leaves nothing then.
   */
  async gather(): Promise<ProviderPart[]> {
    try {
      let noted: Parameters<LineStore["reserve"]>[1][number][] = [];
      for await (const gathered of this.requests()) {
        await this.add(gathered);
        const { model, upstreamModel, ceilingNano: reservedNano } = gathered.request;
        this.ceilingNano += reservedNano;
        noted.push({ line: gathered.line.line, model, upstreamModel, reservedNano });
        if (noted.length < linesAtOnce) continue;
        await this.parts.lines.reserve(this.batch.id, noted);
        noted = [];
      }
      await this.parts.lines.reserve(this.batch.id, noted);
      const ended: ProviderPart[] = [];
      for (const part of this.begun) ended.push(await part.end());
      return ended;
    } catch (error) {
      for (const part of this.begun) {
        const fileId = await part.discard(error);
        if (fileId !== undefined) await this.parts.files.release(fileId);
      }
      throw error;
    }
  }

  private async add(gathered: Gathered): Promise<void> {
    const { api, path } = this.join(gathered.request);
    const model = api.isOneModel ? gathered.request.upstreamModel : null;
    if ((await this.open.get(model)?.add(this.batch.id, gathered)) === true) return;
    const number = this.begun.length;
    if (number >= partsMax)
      throw new RunsHereError(`The requests fill more than ${partsMax} batches of the provider.`);
    const marker = number === 0 ? this.batch.id : `${this.batch.id}-${number}`;
    const { account } = gathered.request;
    const facts = { marker, account, path, upstreamModel: model, firstLine: gathered.line.line };
    const part = new PartInput(api, facts, (content) => this.parts.store(content));
    this.begun.push(part);
    this.open.set(model, part);
    await part.add(this.batch.id, gathered);
  }

  private async *requests(): AsyncGenerator<Gathered> {
    for await (const line of this.parts.lines.notRun(this.batch.id)) {
      if (this.parts.isStopping()) throw new Error("the gateway is stopping");
      // Lets requests of clients pass.
      await new Promise((resolve) => void setImmediate(resolve));
      const request = await this.gathered(line);
      if (request !== undefined) yield { line, request };
    }
  }

  /** Returns a line's request; undefined for one that fails anywhere, and has failed now. */
  private async gathered(line: BatchLine): Promise<GatheredRequest | undefined> {
    let taken: GatheredRequest | undefined;
    let refusal: string | undefined;
    const { batch, caller } = this;
    const bodyText = await readBody(this.parts.files, batch, line);
    const outcome = await this.parts.run({
      caller,
      batch,
      bodyText,
      leg: {
        kind: "gather",
        ceilingNano: 0n,
        take: (request) => (taken = request),
        refuse: (reason) => (refusal = reason),
      },
      rowOf: () =>
        resultRow({ batch_id: batch.id, line: line.line, status: 0, cost_nano: 0, result: "" }),
    });
    if (refusal !== undefined) throw new RunsHereError(refusal);
    if (taken !== undefined) return taken;
    if (outcome.status < 400 || outcome.status >= 500 || outcome.mayRetry || outcome.lacksMoney)
      throw new RunsHereError("A request could not be prepared for a provider.");
    await this.parts.fail(line, outcome);
    return undefined;
  }

  /** Checks that a request may travel with those before it. Throws `RunsHereError`. */
  private join({ provider, account, dialect }: GatheredRequest): {
    api: ProviderBatchApi;
    path: string;
  } {
    if (this.target !== undefined && this.target.provider !== provider)
      throw new RunsHereError("The requests go to several providers.");
    if (this.target !== undefined && this.target.account !== account)
      throw new RunsHereError("The requests are sent with several provider keys.");
    const api = this.target?.api ?? this.parts.apiOf(provider, account);
    const path = api?.pathOf(dialect);
    if (api === undefined || path === undefined)
      throw new RunsHereError(`The batches of ${provider} do not take such requests.`);
    this.target ??= { provider, account, api, path };
    if (this.target.path !== path)
      throw new RunsHereError("The requests go to several endpoints of the provider.");
    return this.target;
  }
}
