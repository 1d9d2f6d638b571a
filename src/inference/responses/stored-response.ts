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
