import { GatewayError } from "../../../platform/kernel/errors.ts";
import { type CatalogModel, routeDialect } from "../../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  Adapter,
  AdaptedRoute,
} from "../../pipeline/inference-call.ts";
import { type Fields, listOf } from "../read-fields.ts";
import { FieldReader } from "../field-reader.ts";
import { routingOf, surfaceCall, tokensOfTexts } from "../surface-call.ts";
import { guardFormatOf, moderates, unknownGuard } from "./guard-formats.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { totalInputTokens, totalOutputTokens } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/response.ts";
import type { WholeAnswer } from "../../dialects/shared/exchange.ts";
import { chatWire } from "../chat-question.ts";
import { sumUsage, adaptWhole } from "../whole-adapter.ts";
import {
  resultOf,
  together,
  type Verdict,
  type GuardFormat,
  categories,
  flaggedAs,
  harmless,
  type Category,
} from "./guard-format.ts";
import { fieldsOf, isObject } from "../../../platform/kernel/json/json-members.ts";

/** A request to moderate as its endpoint has read it. */
interface ReadModerations {
  text: string;
  body: Fields;
  request: ModerationRequest;
  /** The requested model, or the default. */
  model: string;
}

/**
 * Returns the input tokens of a request: its texts, and the overhead of asking a guard model about
 * each.
 */
export function moderationTokens({ texts }: ModerationRequest, model: string): number {
  return tokensOfTexts(texts) + texts.length * (guardFormatOf({ id: model })?.promptTokens ?? 0);
}

/** Builds the call of a request to moderate texts; all of them are one call, and one charge. */
export function moderationsCall(
  origin: CallOrigin,
  { text, body, request, model }: ReadModerations,
): InferenceCall {
  const format = guardFormatOf({ id: model });
  const outputTokensMax =
    format?.questions("").reduce((sum, question) => sum + question.outputTokensMax, 0) ?? 0;
  return surfaceCall(origin, {
    surface: "moderations",
    text,
    routing: routingOf(body, model),
    requirements: {
      texts: request.texts.length,
      outputTokensMax,
      inputTokens: moderationTokens(request, model),
    },
    adapt: (route) => adaptModerations(request, route),
    assertServes: assertModerates,
  });
}

function assertModerates(model: CatalogModel): void {
  if (moderates(model)) return;
  throw new GatewayError(
    "model_not_moderation_compatible",
    `The model ${model.id} is no guard model and does not moderate.`,
    {
      param: "model",
    },
  );
}

/** The most texts of one request that are judged concurrently. */
const questionsAtOnce = 8;

const unusableCode = "upstream_invalid_response";

/** Adapts texts to a route: to OpenAI's moderations all together, to a guard model one by one. */
function adaptModerations(request: ModerationRequest, adapted: AdaptedRoute): Adapter {
  const { model, route } = adapted;
  const isNative =
    model.surface === "moderations" && routeDialect(route, "moderations") === "openai-moderations";
  if (isNative) return adaptNative(request, adapted);
  return adaptGuard(request, {
    adapted,
    format: guardFormatOf(model, route) ?? unknownGuard,
  });
}

interface Judged {
  verdicts: readonly Verdict[];
  metered: MeteredUsage | undefined;
  id: string | null;
}

function adaptNative({ texts }: ModerationRequest, { route }: AdaptedRoute): Adapter {
  return adaptWhole<Judged>({
    bodies: [openaiModerations.encode(texts, route.upstreamModel)],
    parallel: 1,
    losses: [],
    unusableCode,
    read(body) {
      const verdicts = openaiModerations.decode(body);
      if (verdicts?.length !== texts.length) return undefined;
      const { id } = fieldsOf(body);
      return { verdicts, metered: undefined, id: typeof id === "string" ? id : null };
    },
    join: ([judged]) => moderationAnswer(judged as Judged),
  });
}

function adaptGuard(
  { texts }: ModerationRequest,
  { adapted, format }: { adapted: AdaptedRoute; format: GuardFormat },
): Adapter {
  const wire = chatWire(adapted);
  const asked = texts.flatMap((text, textIndex) =>
    format
      .questions(text)
      .map((question, questionIndex) => ({ textIndex, questionIndex, ...wire.encode(question) })),
  );
  return adaptWhole<Judged>({
    bodies: asked.map(({ body }) => body),
    ...(wire.headers !== undefined && { headers: wire.headers }),
    parallel: questionsAtOnce,
    losses: [],
    unusableCode,
    read(body, index) {
      const reply = wire.decode(body);
      const verdict = reply && format.read(reply.text, asked[index]?.questionIndex ?? 0);
      return (
        reply &&
        verdict && {
          verdicts: [verdict],
          metered: reply.metered,
          id: reply.id === "" ? null : reply.id,
        }
      );
    },
    join: (parts) =>
      moderationAnswer({
        verdicts: texts.map((_, textIndex) =>
          together(
            parts.flatMap(({ verdicts }, index) =>
              asked[index]?.textIndex === textIndex ? verdicts : [],
            ),
          ),
        ),
        metered: sumUsage(parts.map(({ metered }) => metered)),
        id: parts[0]?.id ?? null,
      }),
  });
}

const moderationAnswer = ({ verdicts, metered: reported, id }: Judged): WholeAnswer => ({
  upstreamId: id,
  finishReason: null,
  metered: reported,
  outputCharacters: 0,
  hasContent: true,
  spentOnReasoning: false,
  render({ id: shownId, model, metered, chargedNano }) {
    const [prompt, completion] = [
      totalInputTokens(metered.usage),
      totalOutputTokens(metered.usage),
    ];
    return JSON.stringify({
      id: shownId,
      model,
      results: verdicts.map(resultOf),
      usage: {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        cost: usdFromNano(chargedNano),
      },
    });
  },
});

const byName = Object.fromEntries(categories.map((category) => [category, [category]])) as Readonly<
  Record<string, readonly Category[]>
>;

/**
 * OpenAI's `POST /moderations`: every text in one request. Source:
 * https://platform.openai.com/docs/api-reference/moderations
 */
export const openaiModerations = {
  encode: (texts: readonly string[], upstreamModel: string): object => ({
    model: upstreamModel,
    input: texts,
  }),
  /**
   * Decodes the verdicts, one for each text; undefined when the body is no answer of the dialect.
   */
  decode(body: object): Verdict[] | undefined {
    const results = listOf(fieldsOf(body)["results"])?.map(verdictOf);
    return results?.every((verdict) => verdict !== undefined) ? results : undefined;
  },
};

function verdictOf(result: unknown): Verdict | undefined {
  const { flagged, categories: found } = fieldsOf(result);
  if (typeof flagged !== "boolean" || !isObject(found)) return undefined;
  const labels = Object.keys(found).filter((name) => found[name] === true);
  return flagged || labels.length > 0 ? flaggedAs(labels, byName) : harmless;
}

/** Contract: "Size and count bounds". */
const textsMax = 32;
const textLengthMax = 32_000;

/** A request to moderate texts (contract: `POST /moderations`). */
interface ModerationRequest {
  /** The model as the caller wrote it; undefined means the default. */
  model: string | undefined;
  /** At least one. */
  texts: readonly string[];
}

/** Reads a body. Throws `invalid_request` that names the field. */
export function readModerationRequest(body: Fields): ModerationRequest {
  const fields = new FieldReader(body, "invalid_request");
  fields.checkSession();
  const model = fields.optionalText("model");
  return { model: model === "" ? undefined : model, texts: textsOf(body["input"], fields) };
}

function textsOf(input: unknown, fields: FieldReader): string[] {
  if (typeof input === "string") return [bounded(input, "input", fields)];
  const list = listOf(input);
  if (list === undefined)
    throw fields.refusal(
      "input",
      "is required: a string, an array of strings, or of {type: text, text} objects.",
    );
  if (list.length === 0) throw fields.refusal("input", "must have at least one text.");
  if (list.length > textsMax)
    throw fields.refusal("input", `may have at most ${textsMax} texts; these are ${list.length}.`);
  return list.map((entry, index) =>
    bounded(textOf(entry, `input[${index}]`, fields), `input[${index}]`, fields),
  );
}

function textOf(entry: unknown, param: string, fields: FieldReader): string {
  if (typeof entry === "string") return entry;
  if (isObject(entry) && entry["type"] === "text" && typeof entry["text"] === "string")
    return entry["text"];
  const isPicture = isObject(entry) && String(entry["type"]).startsWith("image");
  if (isPicture) throw fields.refusal(param, "is a picture; only texts can be moderated.");
  throw fields.refusal(param, "must be a string or an object of type text with a text.");
}

function bounded(text: string, param: string, fields: FieldReader): string {
  if (text.length <= textLengthMax) return text;
  // Characters beyond the first 65,536 code points count twice in `length`.
  const length = Array.from(text).length;
  if (length <= textLengthMax) return text;
  throw fields.refusal(param, `may have at most ${textLengthMax} characters; it has ${length}.`);
}
