import { z } from "zod";
import { textVector } from "../text-vector.ts";
import { estimateTokens } from "../tokens.ts";
import { openaiSurface } from "./plain-surface.ts";

/** Length of an embedding when the request does not say. */
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
  const texts = inputTexts(request.input);
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

/** Lists of token ids stand for a text each. */
function inputTexts(input: z.infer<typeof embeddingsBody>["input"]): string[] {
  if (typeof input === "string") return [input];
  if (typeof input[0] === "number") return [input.join(" ")];
  return input.map((entry) => (Array.isArray(entry) ? entry.join(" ") : String(entry)));
}

/** Little-endian 32-bit floats, as OpenAI packs them. */
function base64(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [index, value] of vector.entries()) bytes.setFloat32(index * 4, value, true);
  return Buffer.from(bytes.buffer).toString("base64");
}
