import { expect } from "bun:test";
import fc from "fast-check";

/** What happens at once in one step; numbers choose among the runs that there are. */
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("ask" as const), at: fc.nat(), amount: fc.nat() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("open" as const),
      at: fc.nat(),
      amount: fc.integer({ min: 1, max: 400 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("limit" as const, "end" as const),
      at: fc.nat(),
      amount: fc.integer({ min: 1, max: 500 }),
    }),
  },
);
const step = fc.array(action, { minLength: 1, maxLength: 8 });
/** A history of runs: its steps, one after the other. */
export const runHistory = fc.array(step, { minLength: 4, maxLength: 9 });
type Action = typeof action extends fc.Arbitrary<infer Each> ? Each : never;

/** An answer of a gateway. */
interface Answered {
  status: number;
  body: unknown;
}

/** Sends requests to one gateway after the other. */
export interface RunStage {
  /** Asks with a secret; a body is sent as JSON. */
  ask(secret: string, method: string, path: string, body?: unknown): Promise<Answered>;
  /** The body of a chat request. */
  chat: object;
  /** The USD of one unit of a limit; a run gets up to 500 of them. */
  unitUsd: number;
  /** Makes a key with a limit in USD that every gateway takes. */
  makeKey(limit: number): Promise<string>;
}

/** A run as the history knows it. */
interface KnownRun {
  id: string;
  secret: string;
  /** The run that it is nested in; undefined for one of the key. */
  parent: KnownRun | undefined;
  /** What its own requests were charged, in nano-USD. */
  ownNano: number;
  limitNano: number;
  isOpen: boolean;
}

const keyUnits = 1_500;
const nano = (usd: unknown): number => Math.round(Number(usd) * 1e9);

/** Runs of one key, to which random things happen at once, and what holds after each step. */
export class RunHistory {
  private readonly stage: RunStage;
  private readonly key: string;
  private readonly runs: KnownRun[] = [];
  private readonly keyNano: number;

  private constructor(stage: RunStage, key: string) {
    this.stage = stage;
    this.key = key;
    this.keyNano = nano(keyUnits * stage.unitUsd);
  }

  static async begin(stage: RunStage): Promise<RunHistory> {
    return new RunHistory(stage, await stage.makeKey(keyUnits * stage.unitUsd));
  }

  /** Does everything of a step at once, and checks all runs afterwards. */
  async step(actions: readonly Action[]): Promise<void> {
    const known = [...this.runs];
    await Promise.all(actions.map((each) => this.act(each, known)));
    await this.check();
  }

  /** Ends every run. What they left is the key's again, to the nano-USD. */
  async end(): Promise<void> {
    for (const run of this.runs.filter(({ parent }) => parent === undefined))
      await this.change(run, { status: "ended" });
    await this.check();
    const spent = this.runs.reduce((sum, { ownNano }) => sum + ownNano, 0);
    expect(spent).toBeLessThanOrEqual(this.keyNano);
    for (let attempt = 0; ; attempt += 1) {
      const { body } = await this.stage.ask(this.key, "GET", "/key");
      const { data } = body as { data: { limit_remaining: number; usage: number } };
      const left = [nano(data.limit_remaining), nano(data.usage)];
      // The rest comes back once the last request is settled, which is tried twice a second.
      if (attempt === 100) expect(left).toEqual([this.keyNano - spent, spent]);
      if (left[0] === this.keyNano - spent && left[1] === spent) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private async act({ kind, at, amount }: Action, known: readonly KnownRun[]): Promise<void> {
    const run = known[at % (known.length + 1)];
    if (kind === "open") return this.open(run, amount);
    const chosen = run ?? known[0];
    if (chosen === undefined) return;
    if (kind === "ask") await this.request(chosen);
    else if (kind === "end") await this.change(chosen, { status: "ended" });
    else await this.change(chosen, { limit: amount * this.stage.unitUsd });
  }

  private async open(parent: KnownRun | undefined, units: number): Promise<void> {
    const { status, body } = await this.stage.ask(parent?.secret ?? this.key, "POST", "/runs", {
      name: "r",
      limit: units * this.stage.unitUsd,
    });
    expect(status).toBeLessThan(500);
    if (status !== 200) return;
    const { key: secret, data } = body as { key: string; data: { id: string } };
    const limitNano = nano(units * this.stage.unitUsd);
    this.runs.push({ id: data.id, secret, parent, ownNano: 0, limitNano, isOpen: true });
  }

  private async request(run: KnownRun): Promise<void> {
    const { status, body } = await this.stage.ask(
      run.secret,
      "POST",
      "/chat/completions",
      this.stage.chat,
    );
    expect(status).toBeLessThan(500);
    if (status === 200) run.ownNano += nano((body as { usage: { cost: number } }).usage.cost);
  }

  private async change(run: KnownRun, body: object): Promise<void> {
    const { status } = await this.stage.ask(this.key, "PATCH", `/runs/${run.id}`, body);
    expect(status).toBeLessThan(500);
  }

  private async check(): Promise<void> {
    await Promise.all(
      this.runs.map(async (run) => {
        const { body } = await this.stage.ask(this.key, "GET", `/runs/${run.id}`);
        const { data } = body as { data: { limit: number; spent: number; status: string } };
        run.limitNano = nano(data.limit);
        run.isOpen = data.status !== "ended";
        expect([run.id, nano(data.spent)]).toEqual([run.id, this.treeNano(run)]);
      }),
    );
    for (const run of this.runs) expect(this.countedIn(run)).toBeLessThanOrEqual(run.limitNano);
    expect(this.countedIn(undefined)).toBeLessThanOrEqual(this.keyNano);
  }

  private childrenOf(parent: KnownRun | undefined): KnownRun[] {
    return this.runs.filter((run) => run.parent === parent);
  }

  /** What a run and the runs in it were charged. */
  private treeNano(run: KnownRun): number {
    return this.childrenOf(run).reduce((sum, each) => sum + this.treeNano(each), run.ownNano);
  }

  /** What counts against a limit: own charges, open runs whole, and what ended ones spent. */
  private countedIn(run: KnownRun | undefined): number {
    return this.childrenOf(run).reduce(
      (sum, each) => sum + (each.isOpen ? each.limitNano : this.treeNano(each)),
      run?.ownNano ?? 0,
    );
  }
}
