import { brand } from "../../platform/kernel/brand.ts";

/** A response is under way in these two, and only background responses ever are. */
type UnderWayStatus = "queued" | "in_progress";
/** A response that has one of these does not change any more. */
export type EndedStatus = "completed" | "incomplete" | "failed" | "cancelled";
export type ResponseStatus = UnderWayStatus | EndedStatus;

/** An input or output item of the Responses dialect, as it was sent. */
export type ResponseItem = Readonly<Record<string, unknown>>;

/** The response object as clients see it: `id`, `object`, `status`, `model`, `output` and so on. */
export type ResponseRecord = Readonly<Record<string, unknown>>;

/**
 * What every stored response looks like: `resp_` and 32 hexadecimal digits, which begin with the
 * time.
 */
const responseIdPattern = /^resp_[0-9a-f]{32}$/;

/** Whether an id can be that of a stored response; anything else need not be asked for. */
export const isResponseId = (id: string): boolean => responseIdPattern.test(id);

/** A response to be kept. Its status and model are those of its record. */
export interface NewResponse {
  id: string;
  workspaceId: string;
  keyId: string;
  createdAtMs: number;
  completedAtMs: number | null;
  background: boolean;
  previousResponseId: string | null;
  record: ResponseRecord;
  /** The items that this response's own request added to its conversation. */
  inputItems: readonly ResponseItem[];
  /** What a background job is run from; null for a response that has ended. */
  requestText: string | null;
  /** The preset that a background job's request named. */
  presetId?: string | undefined;
}

/** A response as it is found again. */
export interface StoredResponse {
  id: string;
  workspaceId: string;
  keyId: string;
  createdAtMs: number;
  completedAtMs: number | null;
  status: ResponseStatus;
  model: string;
  background: boolean;
  previousResponseId: string | null;
  /**
   * JSON text of the record; while the response is under way, its `status` is the one of `queued`.
   */
  recordText: string;
}

/** Whether nothing more will happen to a response. */
export const hasEnded = (status: ResponseStatus): status is EndedStatus =>
  status !== "queued" && status !== "in_progress";

/** JSON text of the record with the status that the response has now. */
export function shownRecordText({
  status,
  recordText,
}: Pick<StoredResponse, "status" | "recordText">): string {
  if (hasEnded(status)) return recordText;
  return JSON.stringify({ ...(JSON.parse(recordText) as ResponseRecord), status });
}

/** Output items of a record; a record without any has none. */
export function outputItems(record: ResponseRecord): readonly ResponseItem[] {
  const { output } = record;
  return Array.isArray(output)
    ? output.filter((item): item is ResponseItem => typeof item === "object" && item !== null)
    : [];
}

/** One event of a response's stream. */
export interface ResponseEvent {
  /** What `starting_after` counts; grows from event to event. */
  sequenceNumber: number;
  /** Name of the event, such as `response.output_text.delta`. */
  name: string;
  /** The JSON text of its `data:` line. */
  data: string;
}

/** Events that tell how a response ended; what follows them belongs to the end as well. */
const terminalNames = ["response.completed", "response.incomplete", "response.failed"] as const;

/** Name of an event that tells how its response ended. */
export type TerminalName = (typeof terminalNames)[number];

/** Whether an event tells how its response ended. */
export const isTerminal = (name: string): name is TerminalName =>
  (terminalNames as readonly string[]).includes(name);

/** How a response ended, in the words of its record. */
const statusByEnd: Record<TerminalName, "completed" | "incomplete" | "failed"> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

/**
 * The record that events end with, and what the metadata event behind it adds; undefined where they
 * hold no end.
 */
export function endIn(
  events: readonly { name: string; data: string }[],
): { status: "completed" | "incomplete" | "failed"; record: ResponseRecord } | undefined {
  const end = events.find(({ name }) => isTerminal(name));
  if (end === undefined || !isTerminal(end.name)) return undefined;
  const { response } = JSON.parse(end.data) as { response?: ResponseRecord };
  if (response === undefined) return undefined;
  const metadata = events.find(({ name }) => name === brand.metadataEvent);
  const told = metadata === undefined ? {} : (JSON.parse(metadata.data) as Record<string, unknown>);
  const key = brand.metadataKey;
  return {
    status: statusByEnd[end.name],
    record: key in told ? { ...response, [key]: told[key] } : response,
  };
}

/**
 * Events of a response that was created at this time, in Unix seconds, whenever
 * its provider began.
 */
export const createdAt = (
  events: readonly { name: string; data: string }[],
  seconds: number,
): { name: string; data: string }[] =>
  events.map(({ name, data }) => {
    if (!data.includes('"created_at"')) return { name, data };
    const { response, ...others } = JSON.parse(data) as { response?: ResponseRecord };
    return {
      name,
      data:
        response === undefined
          ? data
          : JSON.stringify({ ...others, response: { ...response, created_at: seconds } }),
    };
  });

/** Frames of the wire, exactly as each event was or would have been sent. */
export const framesOf = (events: readonly ResponseEvent[]): string =>
  events.map(({ name, data }) => `event: ${name}\ndata: ${data}\n\n`).join("");

/**
 * The events of whole frames, such as one step of a stream gives; comments and what has no name say
 * nothing.
 */
export function eventsIn(frames: string): { name: string; data: string }[] {
  return frames.split("\n\n").flatMap((frame) => {
    const lines = frame.split("\n");
    const name = lines.find((line) => line.startsWith("event: "))?.slice("event: ".length);
    const data = lines.find((line) => line.startsWith("data: "))?.slice("data: ".length);
    return name === undefined || data === undefined ? [] : [{ name, data }];
  });
}

/**
 * The events of a job under way that are not stored yet, and who waits for more. Followers see an
 * event at once, but the end of a response only when its record is durable: who reads
 * `response.completed` may ask for the response in the next moment.
 */
export class EventLog {
  private unstored: ResponseEvent[] = [];
  private lastStored = -1;
  private lastSeen = -1;
  private terminal: number | undefined;
  private closed = false;
  private endStored = false;
  private readonly waiting = new Set<() => void>();

  /** Sequence number of the event that would come next. */
  get nextSequenceNumber(): number {
    return this.lastSeen + 1;
  }

  /** An event that tells how the response ended is among the events. */
  get hasTerminal(): boolean {
    return this.terminal !== undefined;
  }

  /** Nothing more will come. */
  get ended(): boolean {
    return this.closed;
  }

  append(event: ResponseEvent): void {
    if (this.terminal === undefined && isTerminal(event.name)) this.terminal = this.unstored.length;
    this.unstored.push(event);
    this.lastSeen = event.sequenceNumber;
    this.wakeAll();
  }

  /** Takes back the end that was announced, with everything that came after it. */
  withdrawTerminal(): void {
    if (this.terminal === undefined) return;
    this.unstored.length = this.terminal;
    this.terminal = undefined;
    this.lastSeen = this.unstored.at(-1)?.sequenceNumber ?? this.lastStored;
  }

  /** What may be stored before the response has ended. */
  beforeEnd(): readonly ResponseEvent[] {
    return this.unstored.slice(0, this.terminal);
  }

  /** Everything that is not stored yet. */
  all(): readonly ResponseEvent[] {
    return this.unstored;
  }

  /** The first `count` events are stored now. */
  markStored(count: number): void {
    const stored = this.unstored.splice(0, count);
    this.lastStored = stored.at(-1)?.sequenceNumber ?? this.lastStored;
    if (this.terminal !== undefined) this.terminal -= count;
  }

  /**
   * Events after a sequence number; undefined when some of them have to be read from the database.
   */
  after(sequenceNumber: number): readonly ResponseEvent[] | undefined {
    if (sequenceNumber < this.lastStored) return undefined;
    const visible = this.endStored ? this.unstored : this.beforeEnd();
    return visible.filter((event) => event.sequenceNumber > sequenceNumber);
  }

  /**
   * The end is durable: followers may see it, here too, since the response may be deleted before
   * they read it there.
   */
  markEndStored(): void {
    this.endStored = true;
  }

  /** Nothing more will come; readers that wait are woken. */
  close(): void {
    this.closed = true;
    this.wakeAll();
  }

  /** Calls `wake` at the next change, once. */
  onChange(wake: () => void): void {
    this.waiting.add(wake);
  }

  /** Waits no longer. */
  offChange(wake: () => void): void {
    this.waiting.delete(wake);
  }

  private wakeAll(): void {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }
}
