import type { FrameSource } from "../../platform/kernel/frame-source.ts";

/**
 * The forms of a stream: events; events for clients that fail on blank lines between them
 * (@google/generative-ai 0.24, which LangChain's package for JavaScript brings along); or one JSON
 * array (without `alt=sse`).
 */
export type StreamForm = "events" | "events-without-gaps" | "array";

/**
 * The pause before the bare form of an error. Clients read what arrives together as one piece, and
 * some notice only an error that is a piece of its own.
 */
const pauseMs = 40;

const eventStart = "data: ";

/** The start of the bare form of an error, which is the only frame without `data:`. */
const bareError = '\n\n{"error":';

/**
 * Frames of Google's dialect in the form that the client asked for. Of the two frames of an error,
 * an array gets the first, and events get the second as a piece of its own.
 */
export class GenerateFrames implements FrameSource {
  private rest: string | undefined;
  private hasBegun = false;
  /** Whether an event was begun by a sign of life, which the next one continues. */
  private isOpen = false;
  private isClosed = false;

  constructor(
    private readonly source: FrameSource,
    private readonly form: StreamForm,
  ) {}

  next(): Promise<string | undefined> {
    return new Promise((resolve) => this.tellNext(resolve));
  }

  tellNext(give: (frames: string | undefined) => void): void {
    const { rest, source } = this;
    if (rest !== undefined) {
      this.rest = undefined;
      void Bun.sleep(pauseMs).then(() => give(rest));
      return;
    }
    const pass = (frames: string | undefined): void => give(this.shaped(frames));
    if (source.tellNext === undefined) void source.next().then(pass);
    else source.tellNext(pass);
  }

  ready(): string | undefined {
    if (this.rest !== undefined) return undefined;
    const frames = this.source.ready?.();
    return frames === undefined ? undefined : this.shaped(frames);
  }

  get isOver(): boolean {
    return (
      this.rest === undefined &&
      this.source.isOver === true &&
      (this.form !== "array" || this.isClosed)
    );
  }

  cancel(): void {
    this.source.cancel();
  }

  private shaped(frames: string | undefined): string | undefined {
    if (frames === undefined) return this.closing();
    const bare = frames.lastIndexOf(bareError);
    const first = bare < 0 ? frames : frames.slice(0, bare + 2);
    if (this.form === "array") return this.inArray(first);
    if (bare >= 0) this.rest = frames.slice(bare + 2);
    return this.form === "events" ? first : this.withoutGaps(first);
  }

  /** Returns events alone: a sign of life is the beginning of the next event, and spaces in it. */
  private withoutGaps(frames: string): string {
    const events = frames.trimStart().replaceAll(/\n{3,}/g, "\n\n");
    if (events === "") {
      const isNext = this.isOpen;
      this.isOpen = true;
      return isNext ? " " : eventStart;
    }
    const isNext = this.isOpen;
    this.isOpen = false;
    return isNext ? events.slice(eventStart.length) : events;
  }

  /** Returns what ends the array, once. */
  private closing(): string | undefined {
    if (this.form !== "array" || this.isClosed) return undefined;
    this.isClosed = true;
    return this.hasBegun ? "]" : "[]";
  }

  /** Returns events as members of the array; signs of life are white space between them. */
  private inArray(frames: string): string {
    if (frames.trim() === "") return "\n";
    return frames
      .split("\n\n")
      .map((frame) => {
        if (!frame.startsWith(eventStart)) return "";
        const separator = this.hasBegun ? ",\r\n" : "[";
        this.hasBegun = true;
        return separator + frame.slice(eventStart.length);
      })
      .join("");
  }
}
