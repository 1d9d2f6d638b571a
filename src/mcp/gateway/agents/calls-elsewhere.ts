import { answerMs } from "./held-calls.ts";
import type { Question } from "../server-connections.ts";
import type { ListChannel } from "../list-changes.ts";

/** An agent's answers to the questions of a call, and the name of the credential and the tool. */
interface GivenAnswers {
  state: string;
  owner: string;
  responses: Readonly<Record<string, unknown>>;
}

/** What the gateway that has a call answers to them. */
export type AnswerElsewhere =
  | { result: Readonly<Record<string, unknown>> }
  | { error: { code: number; message: string } }
  | { questions: Readonly<Record<string, Question>>; state: string };

/** Goes on with a call of this gateway; undefined where it has none of this state and owner. */
export type GoOn = (
  given: GivenAnswers,
) => { answer: Promise<AnswerElsewhere>; abandon(): void } | undefined;

type Message = { id: string } & (
  | { kind: "given"; given: GivenAnswers }
  | { kind: "here" }
  | { kind: "answer"; answer: AnswerElsewhere }
  | { kind: "left" }
);

/** Milliseconds within which a gateway says that it has a call. */
const foundMs = 2_000;

const channelName = "mcp-calls";

interface Waiting {
  found(): void;
  answered(answer: AnswerElsewhere): void;
}

/**
 * Calls that other gateways have in memory. An agent whose answers come to this gateway reaches the
 * one that asked by the channel that they share.
 */
export class CallsElsewhere {
  /** Answers of agents that wait here. */
  private readonly waiting = new Map<string, Waiting>();
  /** Calls of this gateway that go on for agents of others. */
  private readonly going = new Map<string, () => void>();

  constructor(
    private readonly channel: ListChannel,
    goOn: GoOn,
  ) {
    channel.on(channelName, (text) => this.hear(JSON.parse(text) as Message, goOn));
  }

  /** Passes answers to the gateway that asked; undefined where none has the call. */
  async ask(given: GivenAnswers, signal: AbortSignal): Promise<AnswerElsewhere | undefined> {
    const id = crypto.randomUUID();
    const { promise, resolve } = Promise.withResolvers<AnswerElsewhere | undefined>();
    let timer = setTimeout(() => resolve(undefined), foundMs);
    const leave = (): void => {
      this.send({ id, kind: "left" });
      resolve(undefined);
    };
    signal.addEventListener("abort", leave);
    this.waiting.set(id, {
      found: () => {
        clearTimeout(timer);
        timer = setTimeout(leave, answerMs);
      },
      answered: resolve,
    });
    this.send({ id, kind: "given", given });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
      this.waiting.delete(id);
    }
  }

  private send(message: Message): void {
    this.channel.publish(channelName, JSON.stringify(message));
  }

  private hear(message: Message, goOn: GoOn): void {
    const { id, kind } = message;
    if (kind === "here") this.waiting.get(id)?.found();
    else if (kind === "answer") this.waiting.get(id)?.answered(message.answer);
    else if (kind === "left") this.going.get(id)?.();
    else void this.goOnHere(id, goOn(message.given));
  }

  private async goOnHere(id: string, found: ReturnType<GoOn>): Promise<void> {
    if (found === undefined) return;
    this.going.set(id, found.abandon);
    this.send({ id, kind: "here" });
    const answer = await found.answer;
    this.going.delete(id);
    this.send({ id, kind: "answer", answer });
  }
}
