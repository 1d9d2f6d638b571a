import type { JsonObject } from "../../canonical/json.ts";
import { coveringDelivered, type MeteredUsage } from "../../canonical/usage.ts";
import { asObject } from "../request-fields.ts";
import { readUsage } from "./read-usage.ts";

/**
 * What a stream has used by now. The start tells the input and hardly any output, the end tells the
 * totals, so that of each count the latest holds; until the end, the output is what was delivered.
 */
export class UsageTally {
  private fields: JsonObject | undefined;
  private characters = 0;
  private isFinal = false;

  /** `usage` of `message_start`. */
  start(usage: unknown): void {
    this.merge(usage);
  }

  /** `usage` of `message_delta`. */
  end(usage: unknown): void {
    this.isFinal ||= asObject(usage) !== undefined;
    this.merge(usage);
  }

  /** So many characters were delivered. */
  said(characters: number): void {
    this.characters += characters;
  }

  /** Undefined while nothing was reported. */
  metered(): MeteredUsage | undefined {
    const reported = readUsage(this.fields);
    if (reported === undefined || this.isFinal) return reported;
    return coveringDelivered(reported, this.characters);
  }

  private merge(usage: unknown): void {
    const told = Object.entries(asObject(usage) ?? {}).filter(
      ([, value]) => value !== null && value !== undefined,
    );
    if (told.length > 0) this.fields = { ...this.fields, ...Object.fromEntries(told) };
  }
}

/** Characters that a delta of a block delivers. */
export function deltaLength(delta: JsonObject): number {
  const { text, thinking, partial_json: json } = delta;
  return lengthOf(text) + lengthOf(thinking) + lengthOf(json);
}

const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);
