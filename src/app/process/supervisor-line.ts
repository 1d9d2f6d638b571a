import {
  placeVariable,
  type ProcessPlace,
  type ReadyProcess,
  type WordOfProcess,
} from "./signals.ts";

type WordOfSupervisor =
  | { kind: "metrics-wanted"; question: number }
  | { kind: "all-metrics"; question: number; text: string };

/** A gateway's connection to the supervisor that started it. */
export class SupervisorLine {
  readonly place: ProcessPlace;
  private readonly waiting = new Map<number, (text: string) => void>();
  private lastQuestion = 0;

  private constructor(place: ProcessPlace) {
    this.place = place;
  }

  /** Opens the connection; undefined for a process that no supervisor started. */
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
    // The supervisor alone receives the signals for all processes.
    process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
    return line;
  }

  /** Reports that this gateway serves. */
  ready(facts: ReadyProcess): void {
    this.say({ kind: "ready", ...facts });
  }

  /** Returns the metrics of all processes. */
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
