import OpenAI, { toFile } from "openai";
import type { Batch, BatchCreateParams } from "openai/resources/batches";
import type { AppSettings } from "../../../src/app/settings-of.ts";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import type { BatchVendor } from "../../support/strict-batches/batch-rules.ts";
import { StrictBatches } from "../../support/strict-batches/strict-batches.ts";

/** A batch as this gateway shows it. */
type ShownBatch = Batch & {
  cost: number;
  reserved: number;
  provider: string | null;
  provider_note: string | null;
};

/** Vendors whose batches a test uses. */
export const nightVendors = ["openai", "anthropic", "google"] as const;

/** A model of each vendor for 2 and 10 USD per million tokens. */
export const nightModels: Record<BatchVendor, string> = {
  openai: "openai/night-1",
  anthropic: "anthropic/night-1",
  google: "google/night-1",
};

/** Returns a line of an input. */
export const lineOf = (
  id: string,
  model: string,
  text = "hello",
  change: Record<string, unknown> = {},
) => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model, max_tokens: 500, messages: [{ role: "user", content: text }], ...change },
});

export const hasEnded = ({ status }: Batch): boolean =>
  ["completed", "cancelled", "expired"].includes(status);

/** A gateway whose providers have batches of their own, and OpenAI's client of it. */
export class NightGateway {
  readonly vendors: StrictBatches;
  readonly gateway: TestGateway;
  readonly openai: OpenAI;

  private constructor(vendors: StrictBatches, gateway: TestGateway) {
    this.vendors = vendors;
    this.gateway = gateway;
    this.openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  }

  /** Starts it with further models of each vendor, and other settings. */
  static async start(
    more: Partial<Record<BatchVendor, readonly object[]>> = {},
    {
      vendors = new StrictBatches(),
      ...settings
    }: Partial<AppSettings> & { vendors?: StrictBatches } = {},
  ) {
    const vendor = (id: BatchVendor) =>
      provider({
        id,
        base_url: vendors.baseUrl(id),
        api_key: "upstream-secret",
        models: [
          {
            id: nightModels[id],
            upstream_model: "night-1",
            context_length: 100_000,
            max_completion_tokens: 1_000,
            pricing: { prompt: "2", completion: "10" },
          },
          ...(more[id] ?? []),
        ],
      });
    const gateway = await startGateway({
      providers: nightVendors.map(vendor),
      batch: { concurrency: 8, native: "auto", pollSeconds: 0.05 },
      ...settings,
    });
    return new NightGateway(vendors, gateway);
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.vendors.stop();
  }

  /** Has batches run again, as before the first test. */
  reset(): void {
    this.vendors.isDone = false;
    this.vendors.ranBeforeCancel = 0;
    this.vendors.changesResults = undefined;
    this.vendors.isCompressed = false;
    this.vendors.calls.length = 0;
  }

  /** Creates a batch of some lines. */
  async submit(
    lines: readonly unknown[],
    openai = this.openai,
    endpoint: BatchCreateParams["endpoint"] = "/v1/chat/completions",
  ): Promise<Batch> {
    const text = lines.map((line) => JSON.stringify(line)).join("\n");
    const file = await openai.files.create({
      file: await toFile(Buffer.from(text), "in.jsonl"),
      purpose: "batch",
    });
    return openai.batches.create({
      input_file_id: file.id,
      endpoint,
      completion_window: "24h",
    });
  }

  /** Returns a batch once it is so. */
  async shownWhen(id: string, isSo: (batch: ShownBatch) => boolean): Promise<ShownBatch> {
    let batch: ShownBatch | undefined;
    await pollUntil(async () => {
      await Bun.sleep(40);
      batch = (await this.openai.batches.retrieve(id)) as ShownBatch;
      return isSo(batch);
    });
    return batch as ShownBatch;
  }

  /** Reads the lines of a file of results. */
  async linesOf(fileId: string | null | undefined) {
    if (fileId == null) return [];
    const text = await (await this.openai.files.content(fileId)).text();
    return text
      .trimEnd()
      .split("\n")
      .map(
        (line) =>
          JSON.parse(line) as {
            custom_id: string;
            response: { status_code: number; request_id: string; body: OpenAI.ChatCompletion };
          },
      );
  }

  /** Returns what the workspace has used, in USD. */
  async usedUsd(): Promise<number> {
    const { data } = (await (await this.gateway.get("/credits")).json()) as {
      data: { total_usage: number };
    };
    return data.total_usage;
  }
}
