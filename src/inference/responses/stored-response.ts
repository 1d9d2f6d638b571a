import { brand } from "../../platform/kernel/brand.ts";

/** The statuses of a response in progress, which only background responses have. */
type UnderWayStatus = "queued" | "in_progress";
/** The statuses of a response that does not change any more. */
export type EndedStatus = "completed" | "incomplete" | "failed" | "cancelled";
export type ResponseStatus = UnderWayStatus | EndedStatus;

/** An input or output item of the Responses dialect, as it was sent. */
export type ResponseItem = Readonly<Record<string, unknown>>;

/** The response object as clients see it: `id`, `object`, `status`, `model`, `output` and so on. */
export type ResponseRecord = Readonly<Record<string, unknown>>;

/**
 * Matches ids of stored responses: `resp_` and 32 hexadecimal digits, which begin with the time.
 */
const responseIdPattern = /^resp_[0-9a-f]{32}$/;

/** Returns whether an id can be that of a stored response; any other need not be looked up. */
export const isResponseId = (id: string): boolean => responseIdPattern.test(id);

/** A response to be stored. Its status and model are those of its record. */
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
  /** The request from which a background job is run; null for a response that has ended. */
  requestText: string | null;
  /** The preset that a background job's request named. */
  presetId?: string | undefined;
}

/** A response as it was stored. */
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
   * The JSON text of the record; while the response is in progress, its `status` is still `queued`.
   */
  recordText: string;
}

/** Returns whether a response does not change any more. */
export const hasEnded = (status: ResponseStatus): status is EndedStatus =>
  status !== "queued" && status !== "in_progress";

/** Returns the JSON text of the record with the response's present status. */
export function shownRecordText({
  status,
  recordText,
}: Pick<StoredResponse, "status" | "recordText">): string {
  if (hasEnded(status)) return recordText;
  return JSON.stringify({ ...(JSON.parse(recordText) as ResponseRecord), status });
}

/** Returns the output items of a record; none where it has no output. */
export function outputItems(record: ResponseRecord): readonly ResponseItem[] {
  const { output } = record;
  return Array.isArray(output)
    ? output.filter((item): item is ResponseItem => typeof item === "object" && item !== null)
    : [];
}

/** An event of a response's stream. */
export interface ResponseEvent {
  /** The number that `starting_after` refers to; it grows from event to event. */
  sequenceNumber: number;
  /** The name of the event, such as `response.output_text.delta`. */
  name: string;
  /** The JSON text of its `data:` line. */
  data: string;
}

/** Events that report how a response ended; what follows them belongs to the end as well. */
const terminalNames = ["response.completed", "response.incomplete", "response.failed"] as const;

/** The name of an event that reports how its response ended. */
export type TerminalName = (typeof terminalNames)[number];

/** Returns whether an event reports how its response ended. */
export const isTerminal = (name: string): name is TerminalName =>
  (terminalNames as readonly string[]).includes(name);

/** The status of a record for each terminal event. */
const statusByEnd: Record<TerminalName, "completed" | "incomplete" | "failed"> = {
  "response.completed": "completed",
  "response.incomplete": "incomplete",
  "response.failed": "failed",
};

/**
 * Returns the record of a terminal event, and what the metadata event behind it adds; undefined
 * where there is no terminal event.
 */
export function endIn(
  events: readonly { name: string; data: string }[],
): { status: "completed" | "incomplete" | "failed"; record: ResponseRecord } | undefined {
  const end = events.find(({ name }) => isTerminal(name));
  if (end === undefined || !isTerminal(end.name)) return undefined;
  const { response } = JSON.parse(end.data) as { response?: ResponseRecord };
  if (response === undefined) return undefined;
  const metadata = events.find(({ name }) => name === brand.metadataEvent);
  const sentMetadata =
    metadata === undefined ? {} : (JSON.parse(metadata.data) as Record<string, unknown>);
  const key = brand.metadataKey;
  return {
    status: statusByEnd[end.name],
    record: key in sentMetadata ? { ...response, [key]: sentMetadata[key] } : response,
  };
}

/**
 * Returns the events with the response's creation time in Unix seconds, regardless of when its
 * provider began.
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

/** Returns the frames of the wire, exactly as each event was or would have been sent. */
export const framesOf = (events: readonly ResponseEvent[]): string =>
  events.map(({ name, data }) => `event: ${name}\ndata: ${data}\n\n`).join("");

/**
 * Returns the events of whole frames, such as one step of a stream yields; comments and unnamed
 * events are skipped.
 */
export function eventsIn(frames: string): { name: string; data: string }[] {
  return frames.split("\n\n").flatMap((frame) => {
    const lines = frame.split("\n");
    const name = lines.find((line) => line.startsWith("event: "))?.slice("event: ".length);
    const data = lines.find((line) => line.startsWith("data: "))?.slice("data: ".length);
    return name === undefined || data === undefined ? [] : [{ name, data }];
  });
}
