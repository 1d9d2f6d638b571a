import type { JsonObject } from "../../inference/canonical/json.ts";
import {
  type InvokedPlace,
  invokedMessages,
} from "../../inference/surfaces/bedrock/invoke-shaper.ts";
import { editMembers } from "../../platform/kernel/json/json-members.ts";
import type { ChatCall } from "../../inference/pipeline/inference-call.ts";
import { messagesReader } from "../inference/messages.ts";
import type { CallReader } from "../inference/read-call.ts";

/** A reader of Messages whose path names the model, and what its last body said of betas. */
interface InvokedReader {
  reader: CallReader;
  /** Gives a call the betas of its body, which providers of the dialect get as a header. */
  addBetas(call: ChatCall): void;
}

const betaHeader = "anthropic-beta";

/** Returns the reader of one request in the form in which the clouds take Anthropic's Messages. */
export function invokedReader(place: InvokedPlace): InvokedReader {
  let betas: string | undefined;
  const reader: CallReader = {
    ...messagesReader,
    prepare({ text, body }) {
      const invoked = invokedMessages(body as JsonObject, place);
      betas = invoked.betas;
      const written = new Map<string, string | undefined>();
      const changed = { ...body };
      for (const [name, value] of invoked.edits) {
        written.set(name, value === undefined ? undefined : JSON.stringify(value));
        if (value === undefined) delete changed[name];
        else changed[name] = value;
      }
      return { text: editMembers(text, written), body: changed };
    },
  };
  return {
    reader,
    addBetas(call) {
      if (betas === undefined) return;
      const sent = call.dialectHeaders[betaHeader];
      call.dialectHeaders = {
        ...call.dialectHeaders,
        [betaHeader]: sent === undefined ? betas : `${sent},${betas}`,
      };
    },
  };
}
