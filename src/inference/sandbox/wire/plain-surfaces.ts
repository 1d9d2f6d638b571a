import type { SandboxDialect, Refusal } from "../dialect.ts";
import { z } from "zod";
import { estimateTokens } from "../prompt.ts";

/** Returns the words of a text, in lower case. */
const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * Returns a vector of length 1 that represents a text: each word counts at the index of its hash,
 * so that texts with words in common are close to each other. The same text always has the same
 * vector.
 */
function textVector(text: string, dimensions: number): number[] {
  const vector = new Float64Array(dimensions);
  const words = wordsOf(text);
  for (const word of words.length > 0 ? words : [text]) {
    const place = Number(BigInt.asUintN(32, BigInt(Bun.hash(word)))) % dimensions;
    vector[place] = (vector[place] ?? 0) + 1;
  }
  const length = Math.hypot(...vector);
  return Array.from(vector, (value) => value / length);
}

/** Returns the similarity of two texts: 0 without a common word, 1 for the same words. */
function similarity(left: string, right: string): number {
  const one = textVector(left, 4096);
  const other = textVector(right, 4096);
  const product = one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0);
  return Math.min(1, Math.round(product * 1e6) / 1e6);
}

/** A request of a surface without conversation: the text in it, and its answer. */
interface PlainRequest {
  /** The text that is searched for directives. */
  text: string;
  /** Returns the body of the answer; `seed` is derived from the bytes of the request. */
  answer(seed: string): unknown;
}

/** A surface that answers one body with one body. */
export interface PlainSurface extends Pick<SandboxDialect, "refusal"> {
  /** Reads the parsed JSON of a request. Throws a ZodError. */
  read(body: unknown): PlainRequest;
}

/** Returns a plain surface that refuses as OpenAI does. */
const openaiSurface = (read: PlainSurface["read"]): PlainSurface => ({
  read,
  refusal: openaiError,
});

const typeByStatus: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** Returns the error body of all of OpenAI's surfaces. */
export const openaiError = ({ status, message }: Refusal): { error: Record<string, unknown> } => ({
  error: {
    message,
    type: typeByStatus[status] ?? (status < 500 ? "invalid_request_error" : "server_error"),
    param: null,
    code: status === 429 ? "rate_limit_exceeded" : null,
  },
});

/** OpenAI's categories, each with the words that make the sandbox flag it. */
const wordsByCategory: Readonly<Record<string, readonly string[]>> = {
  harassment: ["harassment", "idiot"],
  "harassment/threatening": ["threat"],
  hate: ["hate"],
  "hate/threatening": [],
  illicit: ["illicit", "smuggle"],
  "illicit/violent": ["bomb"],
  "self-harm": ["self-harm", "suicide"],
  "self-harm/instructions": [],
  "self-harm/intent": [],
  sexual: ["sexual"],
  "sexual/minors": [],
  violence: ["violence", "kill"],
  "violence/graphic": ["gore"],
};

const moderationsBody = z.object({
  model: z.string().nullish(),
  input: z.union([
    z.string(),
    z.array(z.string()).min(1),
    z.array(z.object({ type: z.string(), text: z.string().optional() })).min(1),
  ]),
});

/** OpenAI's `POST /v1/moderations`: a category is flagged when one of its words is in the text. */
export const moderations = openaiSurface((body) => {
  const request = moderationsBody.parse(body);
  const texts = inputTexts(request.input);
  return {
    text: texts.at(-1) ?? "",
    answer: (seed) => ({
      id: `modr-${seed}`,
      model: request.model ?? "sandbox-moderate",
      results: texts.map(moderate),
    }),
  };
});

/**
 * Returns the texts to judge: several strings one by one; the parts of one input together, as
 * OpenAI does.
 */
function inputTexts(input: z.infer<typeof moderationsBody>["input"]): string[] {
  if (typeof input === "string") return [input];
  if (input.every((entry) => typeof entry === "string")) return input;
  return [
    input.map((entry) => (typeof entry === "string" ? entry : (entry.text ?? ""))).join("\n"),
  ];
}

function moderate(text: string): Record<string, unknown> {
  const words = new Set(text.toLowerCase().match(/[\p{L}-]+/gu));
  const judged = Object.entries(wordsByCategory).map(([category, triggers]) => ({
    category,
    flagged: triggers.some((word) => words.has(word)),
  }));
  const byCategory = <Value>(value: (flagged: boolean) => Value): Record<string, Value> =>
    Object.fromEntries(judged.map(({ category, flagged }) => [category, value(flagged)]));
  return {
    flagged: judged.some((judgement) => judgement.flagged),
    categories: byCategory((flagged) => flagged),
    category_scores: byCategory((flagged) => (flagged ? 0.95 : 0.0001)),
    category_applied_input_types: byCategory(() => ["text"]),
  };
}

const rerankBody = z.object({
  model: z.string(),
  query: z.string().min(1),
  documents: z.array(z.union([z.string(), z.object({ text: z.string() })])).min(1),
  top_n: z.int().min(1).nullish(),
  return_documents: z.boolean().nullish(),
});

/** Jina's `POST /v1/rerank`: documents rank by the words that they share with the query. */
export const rerank = openaiSurface((body) => {
  const request = rerankBody.parse(body);
  const texts = request.documents.map((document) =>
    typeof document === "string" ? document : document.text,
  );
  const tokenCount = [request.query, ...texts].reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    text: request.query,
    answer: () => ({
      model: request.model,
      usage: { total_tokens: tokenCount },
      results: texts
        .map((text, index) => ({
          index,
          relevance_score: similarity(request.query, text),
          ...(request.return_documents ? { document: { text } } : {}),
        }))
        .sort(
          (one, other) => other.relevance_score - one.relevance_score || one.index - other.index,
        )
        .slice(0, request.top_n ?? texts.length),
    }),
  };
});

const parseBody = z.looseObject({
  source: z.looseObject({
    type: z.enum(["url", "workspace_file", "parse_result"]),
    url: z.string().startsWith("https://").optional(),
    file_name: z.string().optional(),
  }),
  page_ranges: z.array(z.object({ start: z.int().min(1), end: z.int().min(1) })).optional(),
  chunking: z.looseObject({ strategy: z.enum(["none", "page", "section"]).optional() }).optional(),
});

/** The pages of a document whose ranges are not named. */
const pagesOfAll = 2;

/**
 * `POST /v1/documents/parse`: a made-up document that names its source. Nothing is fetched.
 * Directives are read from the source's URL or file name.
 */
export const documentsParse = openaiSurface((body) => {
  const { source, page_ranges: ranges, chunking } = parseBody.parse(body);
  const name = source.file_name ?? `${source.type}.pdf`;
  const pages =
    ranges?.reduce((sum, { start, end }) => sum + Math.max(0, end - start + 1), 0) ?? pagesOfAll;
  const markdown = `# ${name}\n\nA simulated document of ${pages} pages.`;
  return {
    text: `${source.url ?? ""} ${name}`,
    answer: () => ({
      result_type: "document",
      file_name: name,
      lane: "sandbox",
      document: {
        page_count: pages,
        markdown,
        text: markdown.replace(/^# /, ""),
        chunks: (chunking?.strategy ?? "none") === "none" ? [] : [{ index: 0, text: markdown }],
      },
      ocr_applied: false,
      units: pages,
      disclosures: ["This result is simulated."],
    }),
  };
});

const guidance = z.union([z.string(), z.record(z.string(), z.unknown()), z.array(z.unknown())]);

const question = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("noul"),
    instructions: guidance,
    criteria: z.record(z.string(), guidance.nullable()).nullish(),
  }),
  z.object({
    type: z.literal("choice"),
    instructions: guidance,
    criteria: z.record(z.string(), guidance.nullable()),
  }),
  z.object({
    type: z.literal("score"),
    instructions: guidance,
    criteria: z.array(guidance).min(2).max(10),
  }),
]);

const decisionsBody = z.object({
  model: z.string(),
  state: guidance,
  questions: z.record(z.string(), question),
});

type Question = z.infer<typeof question>;

const textOf = (guidance: unknown): string =>
  typeof guidance === "string" ? guidance : JSON.stringify(guidance ?? "");

/** Decisions: the more words an option shares with the state, the more likely it is. */
export const decisions = openaiSurface((body) => {
  const request = decisionsBody.parse(body);
  const state = textOf(request.state);
  const questions = Object.entries(request.questions);
  const texts = [
    state,
    ...questions.map(
      ([, { instructions, criteria }]) => textOf(instructions) + JSON.stringify(criteria ?? ""),
    ),
  ];
  return {
    text: state,
    answer: () => ({
      model: request.model,
      answers: Object.fromEntries(questions.map(([id, asked]) => [id, decide(asked, state)])),
      usage: {
        input_tokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
        output_tokens: 0,
      },
    }),
  };
});

/**
 * Returns shares by similarity, which add up to one; equal shares where no option has a word in
 * common.
 */
function sharesOf(state: string, options: readonly string[]): number[] {
  const weights = options.map((option) => 0.1 + similarity(state, option));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function decide(
  { type, instructions, criteria }: Question,
  state: string,
): Record<string, unknown> {
  if (type === "noul") {
    const [noul] = sharesOf(
      state,
      [criteria?.["true"] ?? instructions, criteria?.["false"] ?? ""].map(textOf),
    );
    return { type, noul };
  }
  const options =
    type === "choice"
      ? Object.entries(criteria).map(([name, meaning]) => `${name} ${textOf(meaning)}`)
      : criteria.map(textOf);
  const shares = sharesOf(state, options);
  const confidence = Math.max(...shares);
  if (type === "score") {
    const score = shares.reduce((sum, share, level) => sum + share * level, 0);
    return { type, score, legend: { ...criteria }, probabilities: { ...shares }, confidence };
  }
  const names = Object.keys(criteria);
  return {
    type,
    choice: names[shares.indexOf(confidence)],
    probabilities: Object.fromEntries(names.map((name, index) => [name, shares[index] ?? 0])),
    confidence,
  };
}

/** The length of an embedding when the request does not say. */
const defaultDimensions = 256;

const tokenIds = z.array(z.int().min(0)).min(1);

const embeddingsBody = z.object({
  model: z.string(),
  input: z.union([
    z.string().min(1),
    tokenIds,
    z.array(z.string().min(1)).min(1),
    z.array(tokenIds).min(1),
  ]),
  dimensions: z.int().min(1).max(4096).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullish(),
});

/** OpenAI's `POST /v1/embeddings`. */
export const embeddings = openaiSurface((body) => {
  const request = embeddingsBody.parse(body);
  const texts = embeddedTexts(request.input);
  const tokenCount = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    text: texts.at(-1) ?? "",
    answer: () => ({
      object: "list",
      data: texts.map((text, index) => {
        const vector = textVector(text, request.dimensions ?? defaultDimensions);
        return {
          object: "embedding",
          index,
          embedding: request.encoding_format === "base64" ? base64(vector) : vector,
        };
      }),
      model: request.model,
      usage: { prompt_tokens: tokenCount, total_tokens: tokenCount },
    }),
  };
});

/** Returns the texts to embed; each list of token ids counts as one. */
function embeddedTexts(input: z.infer<typeof embeddingsBody>["input"]): string[] {
  if (typeof input === "string") return [input];
  if (typeof input[0] === "number") return [input.join(" ")];
  return input.map((entry) => (Array.isArray(entry) ? entry.join(" ") : String(entry)));
}

/** Returns base64 of little-endian 32-bit floats, as OpenAI packs them. */
function base64(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [index, value] of vector.entries()) bytes.setFloat32(index * 4, value, true);
  return Buffer.from(bytes.buffer).toString("base64");
}
