import { GatewayError } from "../../../platform/kernel/errors.ts";
import { type CatalogModel, routeDialect } from "../../catalog/model.ts";
import type {
  CallOrigin,
  InferenceCall,
  Adapter,
  AdaptedRoute,
} from "../../pipeline/inference-call.ts";
import { estimateInputTokens } from "../../dialects/requirements.ts";
import { type Fields, fieldsOf } from "../read-fields.ts";
import { routingOf, surfaceCall } from "../surface-call.ts";
import type { DecisionRequest, Question } from "./decision-request.ts";
import { totalInputTokens, totalOutputTokens } from "../../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../../canonical/usage.ts";
import { readOpenaiUsage } from "../../dialects/openai-fields.ts";
import type { WholeAnswer } from "../../dialects/passthrough.ts";
import { chatWire } from "../chat-question.ts";
import { sumUsage, adaptWhole } from "../whole-adapter.ts";
import { chatQuestionOf, sharesOf, answerOf, readAnswer, type Answer } from "./decision-answer.ts";

/** The call of a request for decisions, which costs nothing on any plan. */
export const decisionsCall = (
  origin: CallOrigin,
  { text, body, request }: { text: string; body: Fields; request: DecisionRequest },
): InferenceCall =>
  surfaceCall(origin, {
    surface: "decisions",
    text,
    routing: routingOf(body, request.model),
    asks: {
      texts: Object.keys(request.questions).length,
      inputTokens: estimateInputTokens(text, body),
    },
    unbilled: true,
    adapt: (route) => adaptDecisions(request, route),
    assertServes: assertDecides,
  });

function assertDecides({ id, surface }: CatalogModel): void {
  if (surface === "decisions") return;
  throw new GatewayError(
    "model_unavailable",
    `The model ${id} makes no decisions; it serves ${surface}.`,
    { param: "model" },
  );
}

/** Questions of one request that are asked at once where each is a request of its own. */
const questionsAtOnce = 8;

const unusableCode = "upstream_error";

interface Decided {
  answers: readonly (readonly [id: string, answer: Answer])[];
  metered: MeteredUsage | undefined;
  upstreamId: string | null;
}

/**
 * How questions are put to a route: all together in the decisions' own dialect, or one by one to a
 * chat model.
 */
const adaptDecisions = (request: DecisionRequest, adapted: AdaptedRoute): Adapter =>
  (routeDialect(adapted.route, "decisions") === "chat-logprobs" ? adaptChat : adaptNative)(
    request,
    adapted,
  );

function adaptNative({ state, questions }: DecisionRequest, { route }: AdaptedRoute): Adapter {
  return adaptWhole<Decided>({
    bodies: [{ model: route.upstreamModel, state, questions }],
    parallel: 1,
    losses: [],
    unusableCode,
    read(body) {
      const { answers, usage, id } = fieldsOf(body);
      const read = Object.entries(questions).flatMap(([name, question]): [string, Answer][] => {
        const answer = readAnswer(question, fieldsOf(answers)[name]);
        return answer === undefined ? [] : [[name, answer]];
      });
      if (read.length !== Object.keys(questions).length) return undefined;
      return {
        answers: read,
        metered: readOpenaiUsage(usage),
        upstreamId: typeof id === "string" ? id : null,
      };
    },
    join: ([decided]) => decisionAnswer(decided as Decided),
  });
}

function adaptChat({ state, questions }: DecisionRequest, adapted: AdaptedRoute): Adapter {
  const wire = chatWire(adapted);
  const asked: [string, Question][] = Object.entries(questions);
  return adaptWhole<Decided>({
    bodies: asked.map(([, question]) => wire.encode(chatQuestionOf(state, question)).body),
    ...(wire.headers !== undefined && { headers: wire.headers }),
    parallel: questionsAtOnce,
    losses: [],
    unusableCode,
    read(body, index) {
      const [name, question] = asked[index] ?? [];
      const reply = wire.decode(body);
      const shares = question && reply?.firstToken && sharesOf(question, reply.firstToken);
      if (name === undefined || reply === undefined || shares === undefined) return undefined;
      return {
        answers: [[name, answerOf(question as Question, shares)]],
        metered: reply.metered,
        upstreamId: reply.id === "" ? null : reply.id,
      };
    },
    join: (parts) =>
      decisionAnswer({
        answers: parts.flatMap(({ answers }) => answers),
        metered: sumUsage(parts.map(({ metered }) => metered)),
        upstreamId: parts[0]?.upstreamId ?? null,
      }),
  });
}

const decisionAnswer = ({ answers, metered: reported, upstreamId }: Decided): WholeAnswer => ({
  upstreamId,
  finishReason: null,
  metered: reported,
  outputCharacters: 0,
  hasContent: true,
  spentOnReasoning: false,
  render: ({ model, metered }) =>
    JSON.stringify({
      model,
      answers: Object.fromEntries(answers),
      // The service charges nothing for decisions, even where its provider does.
      usage: {
        input_tokens: totalInputTokens(metered.usage),
        output_tokens: totalOutputTokens(metered.usage),
        cost: 0,
      },
    }),
});
