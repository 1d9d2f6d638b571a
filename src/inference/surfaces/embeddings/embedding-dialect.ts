import type { MeteredUsage } from "../../canonical/response.ts";
import { listOf, type Fields } from "../read-fields.ts";
import {
  type EmbeddingInput,
  readVector,
  type Vector,
  type VectorFormat,
} from "./embedding-request.ts";
import { fieldsOf } from "../../../platform/kernel/json/json-members.ts";

/** Inputs that are sent in one request. */
export interface EmbeddingBatch {
  upstreamModel: string;
  inputs: readonly EmbeddingInput[];
  /** The caller's format; an upstream that knows only one format is asked for that. */
  format: VectorFormat;
  /** Whether the caller named the format. */
  formatNamed: boolean;
  dimensions: number | undefined;
  user: string | undefined;
  rest: Fields;
  /** Fields of Cohere's clients beyond OpenAI's; empty for others. */
  cohere: Fields;
}

/** Kinds of input that the contract's `prompt_tokens_details` distinguishes. */
export type Modality =
  | "text_tokens"
  | "image_tokens"
  | "audio_tokens"
  | "file_tokens"
  | "video_tokens";

/** The answer to one batch. */
export interface EmbeddingPart {
  /** The vectors in the order of the inputs. */
  vectors: readonly Vector[];
  /** Undefined when the provider reported none. */
  metered: MeteredUsage | undefined;
  /** Tokens by kind of input, as far as the provider distinguishes them. */
  modalities?: Partial<Record<Modality, number>>;
  id?: string;
}

/** The wire format of one vendor's embeddings. Each dialect names its documentation page. */
export interface EmbeddingDialect {
  /** The most inputs of one request. */
  inputsMax: number;
  /** The fields of Cohere's clients that it supports. */
  says?: readonly string[];
  /** Encodes a batch. Throws `invalid_request_error` for inputs that it cannot express. */
  encode(batch: EmbeddingBatch): Record<string, unknown>;
  /** Decodes an answer; undefined when the body is none of the dialect's. */
  decode(body: object): EmbeddingPart | undefined;
}

/**
 * Reads a list of `{index, embedding}` in the order of its indexes; undefined when it is malformed.
 */
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

/** Reads the vectors of a list without indexes; undefined when one of them is malformed. */
export const readVectors = (list: readonly unknown[]): Vector[] | undefined =>
  allVectors(list.map(readVector));

/**
 * Returns the vectors, or undefined where one is missing; holes are filled first, since `every`
 * would skip them.
 */
const allVectors = (vectors: readonly (Vector | undefined)[]): Vector[] | undefined =>
  Array.from(vectors).every((vector) => vector !== undefined) ? (vectors as Vector[]) : undefined;

/**
 * Returns the side of a search that Cohere's `input_type` means, for other vendors; undefined for
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
