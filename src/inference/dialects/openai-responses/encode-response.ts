import type { JsonObject } from "../../canonical/json.ts";
import { responseParts, type CanonicalResponse, type Choice } from "../../canonical/response.ts";
import { opaqueName } from "../shared/encode-state.ts";
import type { LossDetector, ResponseContext } from "../dialect.ts";
import { isRanSearch } from "../shared/extras/web-search.ts";
import { encodeAnnotation, encodeFinish, responseRecord, type Ending } from "./answer-fields.ts";
import { idBaseOf, OutputBuilder } from "./encode-stream.ts";
import { plainMessage } from "./items/item-builders.ts";

/** Encodes a whole response for a client, equal to what its stream would have added up to. */
export function encodeResponse(
  response: CanonicalResponse,
  context: ResponseContext = {},
): JsonObject {
  const id = context.id ?? response.id;
  const { ending, output } = plainAnswer(response, id) ?? builtAnswer(response, { id, context });
  const now = context.nowSeconds?.();
  const { usage, gateway, serviceTier, extensions } = response;
  const record = responseRecord(
    {
      id,
      model: context.model ?? response.model,
      createdAtSeconds: response.createdAtSeconds || (now ?? 0),
      ending,
      completedAtSeconds: now ?? response.createdAtSeconds,
      output,
      usage,
      serviceTier,
      gateway,
    },
    context,
  );
  return extensions?.dialect === "openai-responses" ? { ...extensions.fields, ...record } : record;
}

/**
 * Detects pictures by address, sound and parts of other dialects, which Responses has no item for;
 * transcripts are carried as text.
 */
export const createLossDetector = (): LossDetector => (part) => {
  switch (part.type) {
    case "image":
      return part.image.source.type === "base64" ? undefined : "image";
    case "audio-delta":
      return part.data === undefined ? undefined : "audio";
    case "annotation":
      return encodeAnnotation(part.annotation, "").length === 0 ? "annotations" : undefined;
    case "opaque":
      return part.part.dialect === "openai-responses" || isRanSearch(part.part)
        ? undefined
        : opaqueName(part.part);
    default:
      return undefined;
  }
};

interface Answer {
  ending: Ending;
  output: JsonObject[];
}

/** Returns the answer where it is a single text, as most are; undefined for all others. */
function plainAnswer({ choices }: CanonicalResponse, id: string): Answer | undefined {
  const choice = choices.length === 1 ? choices[0] : undefined;
  const text = choice === undefined ? "" : plainText(choice);
  if (choice === undefined || text === "") return undefined;
  const ending = encodeFinish(choice.finish);
  const status = ending.status === "completed" ? "completed" : "incomplete";
  return { ending, output: [plainMessage({ id: `msg_${idBaseOf(id)}_0`, status, text })] };
}

/** Returns the single text of an answer with a plain end; empty where there is more to it. */
function plainText({ index, parts, finish, logProbabilities }: Choice): string {
  const part = parts.length === 1 ? parts[0] : undefined;
  if (part?.type !== "text" || index !== 0 || logProbabilities !== undefined) return "";
  const isPlain =
    part.annotations === undefined && part.phase === undefined && part.startsMessage !== true;
  return isPlain && (finish.reason === "stop" || finish.reason === "length") ? part.text : "";
}

function builtAnswer(
  response: CanonicalResponse,
  { id, context }: { id: string; context: ResponseContext },
): Answer {
  const builder = new OutputBuilder({
    idBase: () => idBaseOf(id),
    hidesReasoning: context.request?.reasoning?.exclude === true,
  });
  for (const part of responseParts(response)) {
    if (!("choiceIndex" in part) || part.choiceIndex !== 0) continue;
    if (part.type === "finish") builder.end(part.finish);
    else builder.add(part);
  }
  const ending = encodeFinish(builder.end());
  return {
    ending,
    output: builder.output(ending.status === "completed" ? "completed" : "incomplete"),
  };
}
