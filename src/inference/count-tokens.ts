import { errorOfAttempts } from "./failure-error.ts";
import { attemptRecord, sendTo } from "./attempt.ts";
import type { InferenceDependencies } from "./dependencies.ts";
import type { ChatCall, InferenceCall } from "./inference-call.ts";
import { failedHeaders } from "./failed-headers.ts";
import { estimateMessagesInput } from "./interpret/anthropic-messages/estimate-input.ts";
import { chatDialectOf } from "./interpret/route-dialect.ts";
import { planCall, type CallPlan } from "./plan-call.ts";
import type { Candidate } from "./routing/candidate.ts";
import { Lifeline } from "./upstream/lifeline.ts";
import { withoutCredential } from "./without-credential.ts";

/** How many tokens a prompt has, and who counted. */
export interface TokenCount {
  inputTokens: number;
  /** The provider's own count, or our estimate. */
  source: "native" | "estimated";
}

const answerBytesMax = 64 * 1024;

/** Whether a route's provider counts tokens itself: only Anthropic's own way of serving Messages has the endpoint. */
const countsItself = ({ route }: Candidate): boolean =>
  chatDialectOf(route) === "anthropic-messages" && route.provider.quirks.messagesPath === undefined;

/**
 * Counts the input tokens of a Messages request: by the provider that would serve it where it counts,
 * else by estimate. Nothing is charged and nothing recorded. Throws `GatewayError` for what may not be
 * asked, and for what the provider says is wrong with the request.
 */
export async function countTokens(
  deps: InferenceDependencies,
  call: ChatCall,
): Promise<TokenCount> {
  const plan = planCall(deps, call);
  const [planned] = plan.candidates;
  const candidate = planned && deps.openedRoutes.open(planned);
  if (candidate !== undefined && countsItself(candidate)) {
    const counted = await askProvider(deps, { call, candidate, plan });
    if (counted !== undefined) return { inputTokens: counted, source: "native" };
  }
  return { inputTokens: estimateMessagesInput(call.body), source: "estimated" };
}

/** The provider's count; undefined where it cannot be had now. */
async function askProvider(
  deps: InferenceDependencies,
  { call, candidate, plan }: { call: InferenceCall; candidate: Candidate; plan: CallPlan },
): Promise<number | undefined> {
  const lifeline = new Lifeline(call.signalOf, { aborts: true });
  const startedMs = deps.clock.monotonicMs();
  const sent = await sendTo(deps, {
    call,
    candidate,
    interpretation: call.interpret(candidate),
    lifeline,
    purpose: "count-tokens",
  });
  if (!sent.ok) {
    // A request that the provider calls wrong would be wrong when it is sent in earnest, too.
    const failure = withoutCredential(sent.failure, candidate.route.provider);
    if (failure.code !== "bad_request" && failure.code !== "context_length_exceeded")
      return undefined;
    const durationMs = deps.clock.monotonicMs() - startedMs;
    const record = attemptRecord(candidate, {
      status: failure.upstreamStatus,
      outcome: "failed",
      reason: failure.reason,
      durationMs,
    });
    const failed = [{ record, failure }];
    throw errorOfAttempts(failed, {
      headers: failedHeaders({ ...plan, deps, call, failed, firstSendMs: startedMs }, [record]),
    });
  }
  const text = await sent.response.readText(answerBytesMax).catch(() => "");
  const count = /"input_tokens"\s*:\s*(\d{1,12})/.exec(text)?.[1];
  return count === undefined ? undefined : Number(count);
}
