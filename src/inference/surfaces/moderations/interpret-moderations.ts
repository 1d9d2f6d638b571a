import { usdFromNano } from "../../../platform/lib/money.ts";
import { totalInputTokens, totalOutputTokens, type MeteredUsage } from "../../canonical/usage.ts";
import { routeDialect } from "../../catalog/reachability.ts";
import type {
  Interpretation,
  InterpretedRoute,
  WholeAnswer,
} from "../../interpret/interpretation.ts";
import { chatWire } from "../chat-question.ts";
import { fieldsOf } from "../read-fields.ts";
import { sumUsage } from "../sum-usage.ts";
import { interpretWhole } from "../whole-interpretation.ts";
import { resultOf, together, type Verdict } from "./categories.ts";
import type { GuardFormat } from "./guard-format.ts";
import { guardFormatOf } from "./guard-formats.ts";
import type { ModerationRequest } from "./moderation-request.ts";
import { openaiModerations } from "./openai-moderations.ts";
import { policyGuard } from "./policy-guard.ts";

/** Texts of one request that are judged at once. */
const questionsAtOnce = 8;

const unusableCode = "upstream_invalid_response";

/** How texts are put to a route: to OpenAI's moderations all together, to a guard model one by one. */
export function interpretModerations(
  request: ModerationRequest,
  interpreted: InterpretedRoute,
): Interpretation {
  const { model, route } = interpreted;
  const isNative =
    model.surface === "moderations" && routeDialect(route, "moderations") === "openai-moderations";
  if (isNative) return interpretNative(request, interpreted);
  // A guard model that nobody knows may be any model that follows instructions.
  return interpretGuard(request, {
    interpreted,
    format: guardFormatOf(model, route) ?? policyGuard,
  });
}

interface Judged {
  verdicts: readonly Verdict[];
  metered: MeteredUsage | undefined;
  id: string | null;
}

function interpretNative(
  { texts }: ModerationRequest,
  { route }: InterpretedRoute,
): Interpretation {
  return interpretWhole<Judged>({
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

function interpretGuard(
  { texts }: ModerationRequest,
  { interpreted, format }: { interpreted: InterpretedRoute; format: GuardFormat },
): Interpretation {
  const wire = chatWire(interpreted);
  const asked = texts.flatMap((text, textIndex) =>
    format
      .questions(text)
      .map((question, questionIndex) => ({ textIndex, questionIndex, ...wire.encode(question) })),
  );
  return interpretWhole<Judged>({
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
