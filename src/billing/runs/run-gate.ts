import { spendingKeyOf, type LlmKeyCaller } from "../../identity/keys/caller.ts";
import type { CredentialDirectory } from "../../identity/keys/credential-directory.ts";
import { closureOf, type Run, type RunClosure } from "../../identity/keys/run.ts";
import { lowerBrandHeader } from "../../platform/kernel/brand.ts";
import type { Clock } from "../../platform/kernel/clock.ts";
import { countText } from "../../platform/kernel/count-text.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano, usdText } from "../../platform/kernel/money.ts";
import type { LedgerPort } from "../ledger/ledger-port.ts";
import type { CountedRun, RequestCounts } from "../allocations/book-request-counts.ts";
import { joinedRun } from "./joined-run.ts";
import type { RunEditor } from "./run-editor.ts";

const headerNames = {
  remaining: lowerBrandHeader("Run-Remaining"),
  requests: lowerBrandHeader("Run-Requests-Remaining"),
} as const;

/** The request header that names the run of a request. */
export const runHeader = lowerBrandHeader("Run");

/** Options of the gate. */
export interface RunGateOptions {
  editor: RunEditor;
  directory: CredentialDirectory;
  counts: RequestCounts;
  ledger: Pick<LedgerPort, "allocations">;
  clock: Clock;
  /** Returns where people reach the service, without a trailing slash. */
  publicUrl(): string;
}

const closedTexts: Record<RunClosure, string> = {
  paused: "is paused. A person lets it go on at its page",
  expired: "has passed its time. Open another one",
  ended: "was ended. Open another one",
};

/** Admits requests to their runs: opens or joins the run, counts the request, and tells what is left. */
export class RunGate {
  /** The requests that runs have refused since this process began. */
  refusedCount = 0;

  constructor(private readonly options: RunGateOptions) {}

  /**
   * Returns the visit of a request to the run of its key, or to the one that it names. Throws
   * `run_exhausted` where the run serves no requests, and as opening a run does.
   */
  async enter(caller: LlmKeyCaller, name: string | null): Promise<RunVisit> {
    const visitor = name === null ? caller : await this.joined(caller, name);
    const { run } = visitor;
    if (run === undefined) throw new Error("a request entered no run");
    const { editor, counts, clock } = this.options;
    const chain = await editor.chainOf(run);
    const counted = chain.flatMap(({ id, maxRequests }) =>
      maxRequests === null ? [] : [{ id, maxRequests }],
    );
    const visit = new RunVisit(this, { caller: withOuterRuns(visitor, chain), run, counted });
    for (const each of chain) {
      const closure = closureOf(each, clock.nowMs());
      if (closure !== undefined)
        throw this.exhausted(each, closedTexts[closure], {
          facts: { reason: `run_${closure}` },
          headers: await visit.headers(),
        });
    }
    if (counted.length === 0) return visit;
    const outcome = await counts.take(run.workspaceId, counted);
    if (outcome.ok) return visit;
    const full = chain.find(({ id }) => id === outcome.full.id) ?? run;
    throw this.exhausted(full, `has made its ${countText(outcome.full.maxRequests, "request")}`, {
      facts: { reason: "run_requests_reached", max_requests: outcome.full.maxRequests },
      headers: await visit.headers(),
    });
  }

  /** Returns the run that a secret belongs to, where another gateway opened it. */
  learn(secret: string): Promise<Run | undefined> {
    return this.options.editor.learn(secret);
  }

  /** Returns what is left of a run's limit, in nano-USD. */
  async remainingNano({ key, workspace }: LlmKeyCaller): Promise<bigint> {
    const figures = await this.options.ledger.allocations.figures({
      workspaceId: workspace.id,
      key: spendingKeyOf(key),
    });
    const usedNano = figures.spentNano + figures.heldNano + figures.allocatedNano;
    const leftNano = (key.limitNanoUsd ?? 0n) - usedNano;
    return leftNano < 0n ? 0n : leftNano;
  }

  /** Returns the fewest requests that are left in some runs; undefined where they are not bounded. */
  async requestsRemaining(
    workspaceId: string,
    counted: readonly CountedRun[],
  ): Promise<number | undefined> {
    if (counted.length === 0) return undefined;
    const left = await Promise.all(
      counted.map(
        async (run) => run.maxRequests - (await this.options.counts.used(workspaceId, run)),
      ),
    );
    return Math.max(0, Math.min(...left));
  }

  /** Takes back the count of a request that was refused before any provider was asked. */
  giveBack({ workspaceId }: Run, counted: readonly CountedRun[]): void {
    if (counted.length > 0) this.options.counts.giveBack(workspaceId, counted);
  }

  /** Returns the page where a person adds to a run. */
  resumeUrl({ id }: Pick<Run, "id">): string {
    return `${this.options.publicUrl()}/resume/${id}`;
  }

  /** Builds the refusal of a run's request. */
  exhausted(
    run: Run,
    problem: string,
    {
      facts,
      headers,
    }: {
      facts: { reason: string } & Record<string, unknown>;
      headers: Readonly<Record<string, string>>;
    },
  ): GatewayError {
    const url = this.resumeUrl(run);
    this.refusedCount += 1;
    return new GatewayError("run_exhausted", `The run "${run.name}" ${problem}: ${url}`, {
      metadata: { ...factsOf(run), ...facts, resume_url: url },
      headers,
    });
  }

  private async joined(caller: LlmKeyCaller, text: string): Promise<LlmKeyCaller> {
    const wanted = joinedRun(text);
    if (caller.run?.name === wanted.name) return caller;
    const { id } = await this.options.editor.join(caller, wanted);
    const joined = this.options.directory.runCaller(id);
    if (joined === undefined)
      throw new GatewayError("conflict", "The key of this run was deleted meanwhile.");
    return joined;
  }
}

/** Returns a caller with the runs around its own, whose budgets count its requests too. */
const withOuterRuns = (caller: LlmKeyCaller, [, ...outer]: readonly Run[]): LlmKeyCaller =>
  outer.length === 0 ? caller : { ...caller, outerRunIds: outer.map(({ id }) => id) };

/** What refusals without the address of the page say in its place. */
const resumePlace = "metadata.resume_url";

/** Returns the members that name a run in its refusals. */
const factsOf = ({ id, name, limitNano }: Run): Record<string, unknown> => ({
  run_id: id,
  run_name: name,
  limit_usd: usdFromNano(limitNano),
});

/** A request in its run. */
class RunVisit {
  /** The caller with the run's key. */
  readonly caller: LlmKeyCaller;
  readonly run: Run;
  private readonly counted: readonly CountedRun[];

  constructor(
    private readonly gate: RunGate,
    { caller, run, counted }: { caller: LlmKeyCaller; run: Run; counted: readonly CountedRun[] },
  ) {
    this.caller = caller;
    this.run = run;
    this.counted = counted;
  }

  /** Returns what is left of the run's limit now, in nano-USD. */
  remainingNano(): Promise<bigint> {
    return this.gate.remainingNano(this.caller);
  }

  /** Returns the requests that are left; undefined where they are not bounded. */
  requestsRemaining(): Promise<number | undefined> {
    return this.gate.requestsRemaining(this.run.workspaceId, this.counted);
  }

  /** Returns the headers that tell what is left of the run. */
  async headers(): Promise<Record<string, string>> {
    const requests = await this.requestsRemaining();
    return {
      [headerNames.remaining]: usdText(await this.remainingNano()),
      ...(requests !== undefined && { [headerNames.requests]: String(requests) }),
    };
  }

  /** Takes back what a request counted that was refused, and completes the refusal. */
  refused(error: unknown): void {
    if (!(error instanceof GatewayError)) return;
    if (error.fault === "client" && error.headers["x-service-provider-chain"] === undefined)
      this.gate.giveBack(this.run, this.counted);
    if (error.metadata["reason"] === "run_limit_reached") this.gate.refusedCount += 1;
    if (error.code !== "run_exhausted") return;
    const url = this.gate.resumeUrl(this.run);
    // Agents show the message alone, so that it names the page as well.
    error.message = error.message.replace(resumePlace, url);
    Object.assign(error.metadata, {
      ...factsOf(this.run),
      ...error.metadata,
      resume_url: url,
    });
  }
}

export type { RunVisit };
