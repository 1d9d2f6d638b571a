import { steerItems } from "../../../inference/dialects/openai-responses/items/steer-input.ts";
import type { ResponseItem } from "../../../inference/responses/stored-response.ts";
import { timeOrderedHex } from "../../../platform/kernel/ids.ts";

/** Input that a client has added to a response in progress. */
export interface Steer {
  id: string;
  responseId: string;
  input: readonly ResponseItem[];
  /** The input as it was sent, for its return where it cannot be used. */
  sent: unknown;
}

/** The most steering inputs that wait for one response. */
const steersMax = 16;

/** Why an input cannot be added, with OpenAI's code. */
interface SteerRefusal {
  code: string;
  message: string;
}

/** Reads an input for a response; returns the refusal of one that cannot be added. */
export function readSteer(
  sent: unknown,
  { responseId, waiting, nowMs }: { responseId: string; waiting: number; nowMs: number },
): Steer | SteerRefusal {
  const input = steerItems(sent);
  if (input === undefined) {
    const message = "input: send a text, or a list of messages with the role user.";
    return { code: "invalid_input", message };
  }
  if (waiting >= steersMax) {
    const message = `${steersMax} inputs already wait for this response. Wait until it has ended.`;
    return { code: "too_many_pending_steers", message };
  }
  return { id: `steer_${timeOrderedHex(nowMs)}`, responseId, input, sent };
}

/** Returns the facts of an input as events show them. */
export const shownSteer = ({ id, responseId }: Steer): Record<string, string> => ({
  id,
  previous_response_id: responseId,
});
