import { totalInputTokens, totalOutputTokens, type MeteredUsage } from "../../canonical/usage.ts";
import { routeDialect } from "../../catalog/reachability.ts";
import { readOpenaiUsage } from "../../dialects/read-openai-usage.ts";
import type {
  Interpretation,
  InterpretedRoute,
  WholeAnswer,
} from "../../interpret/interpretation.ts";
import { chatWire } from "../chat-question.ts";
import { fieldsOf } from "../read-fields.ts";
import { sumUsage } from "../sum-usage.ts";
import { interpretWhole } from "../whole-interpretation.ts";
import { chatQuestionOf, sharesOf } from "./chat-logprobs.ts";
import { answerOf, readAnswer, type Answer } from "./decision-answer.ts";
import type { DecisionRequest, Question } from "./decision-request.ts";

/** Questions of one request that are asked at once where each is a request of its own. */
const questionsAtOnce = 8;

const unusableCode = "upstream_error";

interface Decided {
  answers: readonly (readonly [id: string, answer: Answer])[];
  metered: MeteredUsage | undefined;
  upstreamId: string | null;
}

/** How questions are put to a route: all together in the decisions' own dialect, or one by one to a chat model. */
export const interpretDecisions = (
  request: DecisionRequest,
  interpreted: InterpretedRoute,
): Interpretation =>
  (routeDialect(interpreted.route, "decisions") === "chat-logprobs"
    ? interpretChat
    : interpretNative)(request, interpreted);

function interpretNative(
  { state, questions }: DecisionRequest,
  { route }: InterpretedRoute,
): Interpretation {
  return interpretWhole<Decided>({
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

function interpretChat(
  { state, questions }: DecisionRequest,
  interpreted: InterpretedRoute,
): Interpretation {
  const wire = chatWire(interpreted);
  const asked: [string, Question][] = Object.entries(questions);
  return interpretWhole<Decided>({
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
      // The service charges nothing for decisions, whatever its provider does.
      usage: {
        input_tokens: totalInputTokens(metered.usage),
        output_tokens: totalOutputTokens(metered.usage),
        cost: 0,
      },
    }),
});
