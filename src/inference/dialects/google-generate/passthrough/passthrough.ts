import {
  editInParts,
  editMembers,
  joined,
  memberText,
} from "../../../../platform/kernel/json/json-members.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import { answerFacts } from "../../../canonical/answer-meter.ts";
import { fallbackMembers } from "../../shared/gateway-facts.ts";
import { budgetWithin } from "../../shared/reasoning-rules.ts";
import { fittedCap } from "../../shared/output-cap.ts";
import type {
  OriginalRequest,
  Passthrough,
  ShownAnswer,
  TargetRoute,
  WholeAnswer,
} from "../../shared/exchange.ts";
import { AnswerReader } from "../../shared/stream/answer-reader.ts";
import { asArray, asNumber, asObject, asString, objectsIn } from "../../shared/wire-fields.ts";
import { assembled, decodeResponse } from "../decode-response.ts";
import { GenerateStreamDecoder } from "../decode-stream.ts";
import { encodeResponse } from "../encode-response.ts";
import { needsSignatures } from "../encode-state.ts";
import { googleGatewayFields } from "../request-schema.ts";
import { isCarried, missingSignature } from "../contents/seals.ts";
import { pricedUsageText } from "../usage.ts";
import { KeptWriter } from "./passthrough-stream.ts";

/**
 * Passes requests of Google's clients to Google's models: the original bytes, with only those
 * members replaced that have to change.
 */
export function passThrough(request: OriginalRequest, route: TargetRoute): Passthrough {
  const { parts, losses } = requestText(request, route);
  const { traceId } = request;
  return {
    requestText: joined(parts),
    requestParts: parts,
    losses,
    readWhole: readAnswer,
    openStream(options) {
      const decoder = new GenerateStreamDecoder({ keepsFailures: true });
      const reader = new AnswerReader(decoder, options);
      return { reader, writer: new KeptWriter({ ...options, traceId, reader, decoder }) };
    },
  };
}

function requestText(
  { text, body }: OriginalRequest,
  { route, outputCap }: TargetRoute,
): { parts: readonly string[]; losses: readonly Loss[] } {
  const edits = new Map<string, string | undefined>();
  for (const field of googleGatewayFields) if (field in body) edits.set(field, undefined);
  const config = asObject(body["generationConfig"]) ?? {};
  const fitted = fittedCap(config.maxOutputTokens, {
    field: "maxOutputTokens",
    route,
    outputCap,
  });
  if (fitted.cap !== undefined && fitted.cap !== config.maxOutputTokens)
    edits.set("generationConfig", withCap(text, { config, cap: fitted.cap }));
  const contents = fitSignatures(text, { contents: body["contents"], route });
  if (contents !== undefined) edits.set("contents", JSON.stringify(contents));
  return { parts: editInParts(text, edits), losses: fitted.losses };
}

/** Returns the configuration with a lower cap, and a reasoning budget below it. */
function withCap(text: string, { config, cap }: { config: JsonObject; cap: number }): string {
  const edits = new Map([["maxOutputTokens", String(cap)]]);
  const thinking = asObject(config.thinkingConfig);
  const budget = asNumber(thinking?.thinkingBudget);
  if (thinking !== undefined && budget !== undefined && budget >= cap)
    edits.set(
      "thinkingConfig",
      JSON.stringify({ ...thinking, thinkingBudget: budgetWithin(cap, budget) }),
    );
  return editMembers(memberText(text, "generationConfig") ?? "{}", edits);
}

/**
 * Returns the conversation as Google accepts it. Signatures that carry another vendor's reasoning
 * are removed together with the thoughts before them, and a step that begins with an unsigned call
 * is marked as such, which newer models require. A call in a turn of several contents, which chats
 * keep of a stream, is put into one with what comes before it. Undefined where the client's own text
 * can stay as it is.
 */
function fitSignatures(
  text: string,
  { contents, route }: { contents: unknown; route: TargetRoute["route"] },
): readonly unknown[] | undefined {
  const hasCalls = text.includes('"functionCall"');
  const marks = hasCalls && needsSignatures(route.upstreamModel);
  if (!Array.isArray(contents) || (!hasCalls && !text.includes('"Z3cxO'))) return undefined;
  const turns = wholeTurns(contents);
  let isChanged = turns.length < contents.length;
  const fitted = turns.map((content) => {
    const fields = asObject(content);
    const parts = asArray(fields?.parts);
    if (fields?.role !== "model" || parts === undefined) return content;
    const own = fitTurn(parts, { marks });
    if (own === undefined) return content;
    isChanged = true;
    return { ...fields, parts: own };
  });
  return isChanged ? fitted.filter((content) => !isEmptied(content)) : undefined;
}

const hasCall = (content: unknown): boolean =>
  objectsIn(asObject(content)?.parts).some((part) => part.functionCall !== undefined);

/**
 * Returns the contents with the ones of a turn of the model joined where it makes calls: Google
 * answers "function call turn comes immediately after a user turn" otherwise.
 */
function wholeTurns(contents: readonly unknown[]): readonly unknown[] {
  const turns: unknown[] = [];
  let turn: unknown[] = [];
  const end = (): void => {
    const [first, ...others] = turn;
    const parts = (): unknown[] => turn.flatMap((one) => asArray(asObject(one)?.parts) ?? []);
    if (others.some(hasCall)) turns.push({ ...asObject(first), parts: parts() });
    else for (const content of turn) turns.push(content);
    turn = [];
  };
  for (const content of contents)
    if (asObject(content)?.role === "model") turn.push(content);
    else {
      end();
      turns.push(content);
    }
  end();
  return turns;
}

const isEmptied = (content: unknown): boolean => {
  const { role, parts } = asObject(content) ?? {};
  return role === "model" && Array.isArray(parts) && parts.length === 0;
};

/** Returns the parts of a turn as Google takes them; undefined where they can stay. */
function fitTurn(
  parts: readonly unknown[],
  { marks }: { marks: boolean },
): readonly unknown[] | undefined {
  const isForeign = parts.some((part) => isCarried(asObject(part)?.thoughtSignature));
  const firstCall = parts.findIndex((part) => asObject(part)?.functionCall !== undefined);
  const signature = asObject(parts[firstCall])?.thoughtSignature;
  const isUnsigned = marks && firstCall >= 0 && (!signature || isCarried(signature));
  if (!isForeign && !isUnsigned) return undefined;
  return parts.flatMap((part, index): unknown[] => {
    const fields = asObject(part);
    if (fields === undefined) return [part];
    const { thoughtSignature, ...rest } = fields;
    if (index === firstCall && isUnsigned) return [{ ...rest, thoughtSignature: missingSignature }];
    if (isForeign && fields.thought === true && (!thoughtSignature || isCarried(thoughtSignature)))
      return [];
    if (!isCarried(thoughtSignature)) return [part];
    return rest.text === "" ? [] : [rest];
  });
}

/** Reads what settlement needs from an answer; undefined for any other value. */
function readAnswer(text: string, body: object): WholeAnswer | undefined {
  // A server that streams unasked has sent a list of chunks.
  if (Array.isArray(body)) {
    const merged = encodeResponse(decodeResponse(body));
    return readAnswer(JSON.stringify(merged), merged);
  }
  const answer = asObject(body) ?? {};
  const candidates = asArray(answer.candidates)?.map((one) => asObject(one) ?? {});
  const block = asString(asObject(answer.promptFeedback)?.blockReason);
  if (candidates === undefined && block === undefined) return undefined;
  return {
    ...answerFacts(assembled(answer, { keepsFailures: true }).response()),
    finishReason: asString(candidates?.[0]?.finishReason) ?? block ?? null,
    render: (shown) => renderAnswer(text, shown),
  };
}

/** Returns the answer for the client: the upstream's text with id, model, usage and fallback. */
function renderAnswer(
  text: string,
  { id, model, metered, chargedNano, fallback }: ShownAnswer,
): string {
  return editMembers(
    text,
    new Map([
      ["responseId", JSON.stringify(id)],
      ["modelVersion", JSON.stringify(model)],
      [
        "usageMetadata",
        pricedUsageText({ original: memberText(text, "usageMetadata"), metered, chargedNano }),
      ],
      ...(fallback === undefined ? [] : fallbackMembers(fallback)),
    ]),
  );
}
