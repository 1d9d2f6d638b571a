import type { MeteredUsage } from "../../canonical/response.ts";
import { fieldsOf, listOf, type Fields } from "../read-fields.ts";
import {
  type EmbeddingInput,
  readVector,
  type Vector,
  type VectorFormat,
} from "./embedding-request.ts";

/** Inputs that are sent in one request. */
export interface EmbeddingBatch {
  upstreamModel: string;
  inputs: readonly EmbeddingInput[];
  /** What the caller wants; an upstream that knows one format only is asked for that. */
  format: VectorFormat;
  /** The caller named the format. */
  formatNamed: boolean;
  dimensions: number | undefined;
  user: string | undefined;
  rest: Fields;
  /** What Cohere's clients say beyond OpenAI's; empty for others. */
  cohere: Fields;
}

/** Kinds of input that the contract's `prompt_tokens_details` tells apart. */
export type Modality =
  | "text_tokens"
  | "image_tokens"
  | "audio_tokens"
  | "file_tokens"
  | "video_tokens";

/** What the answer to one batch holds. */
export interface EmbeddingPart {
  /** In the order of the inputs. */
  vectors: readonly Vector[];
  /** Undefined when the provider reported none. */
  metered: MeteredUsage | undefined;
  /** Tokens by kind of input, as far as the provider tells them apart. */
  modalities?: Partial<Record<Modality, number>>;
  id?: string;
}

/** How one vendor is asked for embeddings. Its pages are named beside each dialect. */
export interface EmbeddingDialect {
  /** Inputs that one request may have. */
  inputsMax: number;
  /** Fields of Cohere's clients that it can say. */
  says?: readonly string[];
  /** Throws `invalid_request_error` for inputs that it cannot say. */
  encode(batch: EmbeddingBatch): Record<string, unknown>;
  /** Undefined when the body is no answer of the dialect. */
  decode(body: object): EmbeddingPart | undefined;
}

/** A list of `{index, embedding}` in the order of its indices; undefined when it is none. */
export function readDataList(data: unknown): Vector[] | undefined {
  const entries = listOf(data);
  if (entries === undefined) return undefined;
  const vectors = new Array<Vector | undefined>(entries.length);
  for (const [place, entry] of entries.entries()) {
    const { index = place, embedding } = fieldsOf(entry);
    if (
      typeof index !== "number" ||
      index < 0 ||
      index >= entries.length ||
      !Number.isInteger(index)
    )
      return undefined;
    vectors[index] = readVector(embedding);
  }
  return allVectors(vectors);
}

/** Vectors of a list without indices; undefined when one of them is none. */
export const readVectors = (list: readonly unknown[]): Vector[] | undefined =>
  allVectors(list.map(readVector));

/** Filled with `undefined` where a place was left out, which `every` would skip. */
const allVectors = (vectors: readonly (Vector | undefined)[]): Vector[] | undefined =>
  Array.from(vectors).every((vector) => vector !== undefined) ? (vectors as Vector[]) : undefined;

/**
 * What Cohere's `input_type` says of a search, as other vendors call its two sides; undefined for
 * other purposes.
 */
export function searchSideOf(fields: Fields): "query" | "document" | undefined {
  switch (fields["input_type"]) {
    case "search_query":
      return "query";
    case "search_document":
      return "document";
    default:
      return undefined;
  }
}
