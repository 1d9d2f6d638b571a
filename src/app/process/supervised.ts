/** The variable in which a process finds its place, as JSON. */
export const placeVariable = "SWITCHYARD_PROCESS";

/** The place of a gateway among several processes of one machine. */
export interface ProcessPlace {
  /** From 1. */
  number: number;
  /** The port that all share; 0 lets the first pick one. */
  port: number;
  /** Whether it makes what is shown once: the first key, and the link that claims the owner account. */
  announces: boolean;
}

/** What a gateway says once it serves. */
export interface ReadyProcess {
  port: number;
  url: string;
  /** What the terminal shows before the ready line. */
  lines: readonly string[];
}

/** What gateways say to their supervisor. */
export type WordOfProcess =
  | ({ kind: "ready" } & ReadyProcess)
  | { kind: "metrics"; question: number; text: string }
  | { kind: "all-metrics-wanted"; question: number };

type WordOfSupervisor =
  | { kind: "metrics-wanted"; question: number }
  | { kind: "all-metrics"; question: number; text: string };

/** A gateway's line to the supervisor that started it. */
export class SupervisorLine {
  readonly place: ProcessPlace;
  private readonly waiting = new Map<number, (text: string) => void>();
  private lastQuestion = 0;

  private constructor(place: ProcessPlace) {
    this.place = place;
  }

  /** Undefined for a process that no supervisor started. */
  static open(
    environment: Readonly<Record<string, string | undefined>>,
    { ownMetrics }: { ownMetrics(): Promise<string> },
  ): SupervisorLine | undefined {
    const place = environment[placeVariable];
    if (place === undefined || process.send === undefined) return undefined;
    const line = new SupervisorLine(JSON.parse(place) as ProcessPlace);
    process.on("message", (word: WordOfSupervisor) => {
      if (word.kind === "all-metrics") {
        line.waiting.get(word.question)?.(word.text);
        line.waiting.delete(word.question);
        return;
      }
      void ownMetrics().then((text) =>
        line.say({ kind: "metrics", question: word.question, text }),
      );
    });
    // Signals for all processes reach the supervisor alone.
    process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
    return line;
  }

  /** Says that this gateway serves. */
  ready(facts: ReadyProcess): void {
    this.say({ kind: "ready", ...facts });
  }

  /** Metrics of all processes. */
  allMetrics(): Promise<string> {
    const question = (this.lastQuestion += 1);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.waiting.set(question, resolve);
    this.say({ kind: "all-metrics-wanted", question });
    return promise;
  }

  private say(word: WordOfProcess): void {
    if (process.connected) process.send?.(word);
  }
}
