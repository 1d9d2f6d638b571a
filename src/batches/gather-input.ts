import type { FileStore } from "../files/file-store.ts";
import type { ProviderBatchApi } from "../inference/pipeline/batches/provider-batches.ts";
import type { LlmKeyCaller } from "../identity/keys/caller.ts";
import type { GatheredRequest } from "../platform/kernel/models/batch-leg.ts";
import type { Batch, BatchLine } from "./batch.ts";
import type { LineOutcome, RunLine } from "./batch-runner.ts";
import { type LineStore, resultRow } from "./line-store.ts";
import { readBody } from "./read-input.ts";

/** Why a batch's lines cannot all run in one batch of a provider. */
export class RunsHereError extends Error {}

/** The dependencies of preparing a batch for a provider. */
export interface GatherParts {
  files: FileStore;
  lines: LineStore;
  run: RunLine;
  /** Returns the API for batches of a provider; undefined where it has none. */
  apiOf(providerId: string): ProviderBatchApi | undefined;
  /** Stores that a line has failed, as it would fail anywhere. */
  fail(line: BatchLine, outcome: LineOutcome): Promise<void>;
  /** Whether the gateway is stopping. */
  isStopping(): boolean;
}

/** Lines that are read, and noted in the database, at once. */
const linesAtOnce = 200;

/** Returns the id by which a provider knows a line. */
const lineIdOf = (batchId: string, line: number): string => `${batchId.slice(-16)}-${line}`;

/** Returns the number of the line that such an id names; undefined for one of another batch. */
export function lineOfId(batchId: string, customId: string): number | undefined {
  const [head, number] = customId.split("-");
  const line = Number(number);
  return head === batchId.slice(-16) && Number.isSafeInteger(line) ? line : undefined;
}

/** A line, and its request as the provider is sent it. */
interface Gathered {
  line: BatchLine;
  request: GatheredRequest;
}

/** Prepares the lines of a batch for one provider's batch, as they are read. */
export class GatheredInput {
  count = 0;
  ceilingNano = 0n;
  readonly headers: Record<string, string> = {};
  private readonly parts: GatherParts;
  private readonly batch: Batch;
  private readonly caller: LlmKeyCaller;
  private target:
    | { provider: string; api: ProviderBatchApi; path: string; upstreamModel: string }
    | undefined;

  constructor(parts: GatherParts, { batch, caller }: { batch: Batch; caller: LlmKeyCaller }) {
    this.parts = parts;
    this.batch = batch;
    this.caller = caller;
  }

  /** The provider of the lines, known once the first was read. */
  get chosen(): NonNullable<GatheredInput["target"]> {
    if (this.target === undefined) throw new RunsHereError("No line could be sent.");
    return this.target;
  }

  /** Yields the content of the provider's batch. Throws `RunsHereError`. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    let noted: Parameters<LineStore["reserve"]>[1][number][] = [];
    let bytes = 0;
    for await (const { line, request } of this.requests()) {
      const { api, path } = this.chosen;
      const customId = lineIdOf(this.batch.id, line.line);
      const before = this.count === 0 ? api.frame.head : api.frame.between;
      const piece = Buffer.from(before + api.write({ customId, path, text: request.text }));
      this.count += 1;
      bytes += piece.byteLength;
      this.ceilingNano += request.ceilingNano;
      if (bytes > api.bytesMax || this.count > api.requestsMax)
        throw new RunsHereError("The requests are more than the provider takes in one batch.");
      const { model, upstreamModel, ceilingNano: reservedNano } = request;
      noted.push({ line: line.line, model, upstreamModel, reservedNano });
      if (noted.length >= linesAtOnce) {
        await this.parts.lines.reserve(this.batch.id, noted);
        noted = [];
      }
      yield piece;
    }
    await this.parts.lines.reserve(this.batch.id, noted);
    yield Buffer.from(this.chosen.api.frame.tail);
  }

  private async *requests(): AsyncGenerator<Gathered> {
    for await (const line of this.parts.lines.notRun(this.batch.id)) {
      if (this.parts.isStopping()) throw new Error("the gateway is stopping");
      // Lets requests of clients pass.
      await new Promise((resolve) => void setImmediate(resolve));
      const request = await this.gathered(line);
      if (request === undefined) continue;
      this.join(request);
      yield { line, request };
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
      endpoint: batch.endpoint,
      form: batch.form,
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
  private join({ provider, dialect, upstreamModel, headers }: GatheredRequest): void {
    if (this.target !== undefined && this.target.provider !== provider)
      throw new RunsHereError("The requests go to several providers.");
    const api = this.target?.api ?? this.parts.apiOf(provider);
    const path = api?.pathOf(dialect);
    if (api === undefined || path === undefined)
      throw new RunsHereError(`The batches of ${provider} do not take such requests.`);
    const { target } = this;
    this.target ??= { provider, api, path, upstreamModel };
    if (target !== undefined && target.path !== path)
      throw new RunsHereError("The requests go to several endpoints of the provider.");
    if (target !== undefined && api.isOneModel && target.upstreamModel !== upstreamModel)
      throw new RunsHereError(
        `A batch of ${provider} has one model, and the requests name several.`,
      );
    for (const [name, value] of Object.entries(headers)) this.addHeader(name, value);
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
