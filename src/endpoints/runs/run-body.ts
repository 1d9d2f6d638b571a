import type { RequestContext } from "../../access/define-endpoint.ts";
import type { RunVisit } from "../../billing/runs/run-gate.ts";
import type { Run } from "../../identity/keys/run.ts";
import type { ClientDialect } from "../../inference/dialects/dialect.ts";
import {
  repeatedCalls,
  withCap,
  withEffort,
  withLastText,
} from "../../inference/dialects/run-fields.ts";
import { lowerBrandHeader } from "../../platform/kernel/brand.ts";
import { countText } from "../../platform/kernel/count-text.ts";
import { usdText } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { runNamedIn } from "../inference/request-names.ts";

type Body = Readonly<Record<string, unknown>>;

/** A body with its JSON text. */
interface SentBody {
  text: string;
  body: Body;
}

const headerNames = {
  degraded: lowerBrandHeader("Run-Degraded"),
  loop: lowerBrandHeader("Run-Loop"),
  hint: lowerBrandHeader("Run-Hint"),
} as const;

/** Returns a body without the run that its metadata names, which providers do not know. */
function withoutRunName({ metadata, ...body }: Body): Body {
  const { run: _, ...rest } = metadata as Record<string, unknown>;
  return Object.keys(rest).length === 0 ? body : { ...body, metadata: rest };
}

/** Returns a body as a run's rule changes it once little is left, with the names of the changes. */
function degraded(
  { degrade, limitNano }: Run,
  { body, dialect, leftNano }: { body: Body; dialect: ClientDialect; leftNano: bigint },
): { body: Body; changes: string[] } {
  const none = { body, changes: [] };
  if (degrade === undefined || Number(leftNano) >= Number(limitNano) * degrade.below) return none;
  const { model, maxTokens, effort } = degrade;
  const changes: string[] = [];
  let changed = body;
  if (model !== undefined && model !== body["model"]) {
    const { models: _, ...rest } = changed;
    changed = { ...rest, model };
    changes.push("model");
  }
  if (maxTokens !== undefined) {
    changed = withCap(dialect, changed, maxTokens);
    changes.push("max_tokens");
  }
  if (effort !== undefined) {
    changed = withEffort(dialect, changed, effort);
    changes.push("effort");
  }
  return { body: changed, changes };
}

/** The last prompt of each run, and how often it came in a row. */
const lastPrompts = new WeakMap<Run, { hash: bigint | number; count: number }>();

/** Returns how often a prompt came in a row in a run, with this time. */
function repeatedPrompts(run: Run, text: string): number {
  const hash = Bun.hash(text);
  const last = lastPrompts.get(run);
  const count = last?.hash === hash ? last.count + 1 : 1;
  lastPrompts.set(run, { hash, count });
  return count;
}

/** Warns of repetitions, and refuses the request at the most that its run allows. */
async function guardLoop(
  context: RequestContext,
  { visit, deps, sent }: { visit: RunVisit; deps: Pick<Dependencies, "runs">; sent: SentBody },
): Promise<void> {
  const { run } = visit;
  if (run.loopGuard === undefined) return;
  const count = Math.max(repeatedPrompts(run, sent.text), repeatedCalls(sent.body));
  if (count >= run.loopGuard.warn) context.answerHeaders.set(headerNames.loop, String(count));
  if (count < run.loopGuard.stop) return;
  throw deps.runs.gate.exhausted(
    run,
    `was stopped: the same request came ${count} times in a row`,
    {
      facts: { reason: "run_loop", repetitions: count },
      headers: await visit.headers(),
    },
  );
}

const hintOf = ({ limitNano }: Run, leftNano: bigint, requests: number | undefined): string =>
  `[Budget of this run: ${usdText(leftNano)} of ${usdText(limitNano)} USD` +
  `${requests === undefined ? "" : ` and ${countText(requests, "request")}`} are left.]`;

/**
 * Returns the body of a request as its run changes it: without the run's name, with what the run's
 * rule changes once little is left, and with a line about what is left where the caller asks for
 * it. Throws `run_exhausted` for a request that repeats itself.
 */
export async function bodyInRun(
  context: RequestContext,
  sent: SentBody,
  { deps, dialect }: { deps: Pick<Dependencies, "runs">; dialect: ClientDialect },
): Promise<SentBody> {
  const visit = deps.runs.door.visitOf(context);
  const named = runNamedIn(sent.body) !== undefined;
  let body = named ? withoutRunName(sent.body) : sent.body;
  if (visit !== undefined) {
    await guardLoop(context, { visit, deps, sent });
    const wantsHint = context.request.headers.get(headerNames.hint)?.trim() === "true";
    if (visit.run.degrade !== undefined || wantsHint) {
      const leftNano = await visit.remainingNano();
      const rule = degraded(visit.run, { body, dialect, leftNano });
      if (rule.changes.length > 0)
        context.answerHeaders.set(headerNames.degraded, rule.changes.join(", "));
      body = wantsHint
        ? withLastText(rule.body, hintOf(visit.run, leftNano, await visit.requestsRemaining()))
        : rule.body;
    }
  }
  return body === sent.body ? sent : { text: JSON.stringify(body), body };
}
