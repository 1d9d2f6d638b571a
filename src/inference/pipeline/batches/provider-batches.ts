import type { StoredContent } from "../../../platform/spool/spool.ts";
import { ProviderCallError } from "./provider-api.ts";

/** A request of a batch, in the wire format of its provider. */
interface BatchRequest {
  /** The id by which its answer is found again. */
  customId: string;
  /** The endpoint that `pathOf` names. */
  path: string;
  /** The body as JSON text. */
  text: string;
}

/** A batch that is to be handed to a provider. */
interface BatchInput {
  /** The requests, as `frame` puts them. */
  content: StoredContent;
  /** The endpoint of all of its requests, and their model where it has to be the same. */
  path: string;
  upstreamModel: string;
  /** A text by which the batch is found again where it was not learned that it was taken. */
  marker: string;
  /** Headers of the requests that are sent with the batch. */
  headers: Readonly<Record<string, string>>;
}

/** A batch of which it was not learned whether the provider took it. */
interface LostBatch {
  marker: string;
  sinceMs: number;
  requests: number;
  /** The ids of batches that are known, and thus not this one. */
  known: ReadonlySet<string>;
}

/** How a batch of a provider has ended. */
interface BatchEnd {
  /** The provider's code where it has rejected the batch as a whole, and ran none of it. */
  rejection: string | null;
}

/** A batch at a provider, by the provider's ids. */
export interface ProviderJob {
  id: string;
  /** The file of its requests; null where the provider keeps none that has to be deleted. */
  file: string | null;
}

/** The answer to a request of a batch, or why there is none. */
export interface BatchAnswer {
  /** The id of its request; null where what came could not be read. */
  customId: string | null;
  /** The HTTP status and the body; 0 for a request that was not run. */
  status: number;
  text: string;
}

/** The API of a vendor for batches. */
export interface ProviderBatchApi {
  /** What stands before, between and behind the requests in the content of a batch. */
  frame: { head: string; between: string; tail: string };
  /** The most bytes of the content, and the most requests. */
  bytesMax: number;
  requestsMax: number;
  /** Whether all requests of a batch are of one model. */
  isOneModel: boolean;
  /** Returns the endpoint of requests in a wire format; undefined for those that it cannot run. */
  pathOf(dialect: string): string | undefined;
  /** Writes a request into the content. */
  write(request: BatchRequest): string;
  /** Hands a batch over. Rejects with `ProviderCallError` where it is refused. */
  create(input: BatchInput): Promise<ProviderJob>;
  /** Finds a batch that was created after a time; undefined where there is none. */
  find(lost: LostBatch): Promise<ProviderJob | undefined>;
  /** Returns how the batch has ended; undefined while it runs. */
  endOf(job: ProviderJob): Promise<BatchEnd | undefined>;
  /** Reads the answers of a batch that has ended, as they come. */
  answers(job: ProviderJob): AsyncGenerator<BatchAnswer>;
  /** Asks for the end of a batch; requests that have run are answered. */
  cancel(job: ProviderJob): Promise<void>;
  /** Deletes what the provider stores of a batch. */
  forget(job: ProviderJob): Promise<void>;
}

/** The status of an error after which it is certain that the provider has taken no batch. */
const notTaken = 424;

/** Returns the id in an answer. Throws `ProviderCallError` for one that is no such object. */
export function idIn(value: unknown, pattern: RegExp): string {
  if (typeof value === "string" && pattern.test(value)) return value;
  throw new ProviderCallError(notTaken, "The address answers as no API for batches does.");
}

/** Runs a step before a batch is created: where it fails, the provider has taken none. */
export async function beforeBatch<Result>(step: Promise<Result>): Promise<Result> {
  try {
    return await step;
  } catch (error) {
    throw new ProviderCallError(notTaken, error instanceof Error ? error.message : String(error));
  }
}

/** Returns a code of an error; texts of providers may name the operator's account, and are not shown. */
export const codeOf = (value: unknown): string =>
  /^[A-Za-z0-9_]{1,64}$/.test(String(value)) ? String(value) : "rejected";

/** Returns the text of a member; undefined for any other value. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;
