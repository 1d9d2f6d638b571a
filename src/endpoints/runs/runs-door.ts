import type { RequestContext } from "../../access/define-endpoint.ts";
import type { RunDoor } from "../../access/guard.ts";
import type { Runs } from "../../billing/runs/open-runs.ts";
import { runHeader, type RunGate, type RunVisit } from "../../billing/runs/run-gate.ts";
import { runSecretPrefix } from "../../billing/runs/run-editor.ts";
import { Reply, type Answer } from "../../http/reply.ts";

/** The door of inference requests to their runs. A request without a run passes it unchanged. */
export class RunsDoor implements RunDoor {
  private readonly gate: RunGate;
  private readonly visits = new WeakMap<RequestContext, RunVisit>();
  /** Whether other gateways may open runs that this one does not know. */
  private readonly isShared: boolean;

  constructor({ gate, isShared }: { gate: RunGate; isShared: boolean }) {
    this.gate = gate;
    this.isShared = isShared;
  }

  learn(secrets: readonly string[]): Promise<boolean> | undefined {
    const secret = this.isShared
      ? secrets.find((each) => each.startsWith(runSecretPrefix))
      : undefined;
    return secret === undefined
      ? undefined
      : this.gate.learn(secret).then((run) => run !== undefined);
  }

  enter(context: RequestContext): Promise<void> | undefined {
    const { caller } = context;
    if (caller.kind !== "llm-key") return undefined;
    const name = context.request.headers.get(runHeader);
    return caller.run === undefined && name === null ? undefined : this.visit(context, name);
  }

  /**
   * Lets a request into the run that its body names, and adds the headers of the run once the work
   * is done.
   */
  async within<Result>(
    context: RequestContext,
    name: string,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.isIn(context)) return work();
    await this.visit(context, name);
    try {
      const result = await work();
      return result instanceof Reply
        ? ((await this.withRunHeaders(context, result)) as Result)
        : result;
    } catch (error) {
      await this.refused(context, error);
      throw error;
    }
  }

  isIn({ caller }: RequestContext): boolean {
    return caller.kind === "llm-key" && caller.run !== undefined;
  }

  async tell(context: RequestContext, answer: Promise<Answer>): Promise<Answer> {
    try {
      return await this.withRunHeaders(context, await answer);
    } catch (error) {
      await this.refused(context, error);
      throw error;
    }
  }

  /** Returns the visit of a request that is in a run. */
  visitOf(context: RequestContext): RunVisit | undefined {
    return this.visits.get(context);
  }

  private async visit(context: RequestContext, name: string | null): Promise<void> {
    const { caller } = context;
    if (caller.kind !== "llm-key") return;
    const visit = await this.gate.enter(caller, name);
    context.caller = visit.caller;
    this.visits.set(context, visit);
  }

  private async withRunHeaders(context: RequestContext, answer: Answer): Promise<Answer> {
    const headers = await this.visits.get(context)?.headers();
    for (const [name, value] of Object.entries(headers ?? {})) {
      if (answer instanceof Reply) answer.headers[name] = value;
      else answer.headers.set(name, value);
    }
    return answer;
  }

  private async refused(context: RequestContext, error: unknown): Promise<void> {
    const visit = this.visits.get(context);
    visit?.refused(error);
    const headers = await visit?.headers().catch(() => undefined);
    for (const [name, value] of Object.entries(headers ?? {}))
      context.answerHeaders.set(name, value);
  }
}

/** Returns the parts of runs with the door of inference requests to them. */
export const withDoor = (runs: Runs, isShared: boolean): Runs & { door: RunsDoor } => ({
  ...runs,
  door: new RunsDoor({ gate: runs.gate, isShared }),
});
