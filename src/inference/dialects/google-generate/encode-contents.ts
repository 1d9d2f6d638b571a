import type { JsonObject } from "../../canonical/json.ts";
import {
  splitLeadingSystem,
  type AssistantMessage,
  type Message,
  type SystemMessage,
  type ToolMessage,
} from "../../canonical/message.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import { isBillingLine } from "../billing-line.ts";
import { repairToolTurns } from "../repair-tool-turns.ts";
import { unsupportedContent } from "../request-fields.ts";
import { encodeModelTurn } from "./encode-model-turn.ts";
import { encodeUserPart, textParts } from "./encode-parts.ts";
import type { GeminiPlace, GeminiState } from "./encode-state.ts";

/**
 * The conversation as Gemini has it: instructions apart, then contents whose roles alternate. A
 * request of instructions alone asks them as the user, since Gemini refuses an empty conversation.
 */
export function encodeContents(state: GeminiState): JsonObject {
  const { leading, rest } = splitLeadingSystem(repairToolTurns(state.request.messages));
  const instructions = leading.flatMap((message, index) =>
    systemParts(message, state.at(`messages[${index}]`)),
  );
  const conversation = new ConversationEncoder(state);
  rest.forEach((message, index) =>
    conversation.add(message, state.at(`messages[${leading.length + index}]`)),
  );
  const contents = conversation.finish();
  if (contents.length > 0)
    return {
      contents,
      ...(instructions.length > 0 && { systemInstruction: { parts: instructions } }),
    };
  if (instructions.length > 0) return { contents: [{ role: "user", parts: instructions }] };
  throw unsupportedContent("messages", "hold no content, which Gemini refuses; say something.");
}

function systemParts(message: SystemMessage, place: GeminiPlace): JsonObject[] {
  place.loseDecoration(message);
  return message.parts
    .filter((part) => !isBillingLine(part.text))
    .flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`)));
}

/** A tool's result with its place, until all results of its turn are there. */
interface HeldResult {
  message: ToolMessage;
  place: GeminiPlace;
}

/** Puts messages together to contents: neighbours of one role are one, results of one turn stand together. */
class ConversationEncoder {
  private readonly state: GeminiState;
  private readonly contents: { role: "user" | "model"; parts: JsonObject[] }[] = [];
  private openCalls: ToolCallPart[] = [];
  private readonly results = new Map<string, HeldResult>();
  private imageCount = 0;

  constructor(state: GeminiState) {
    this.state = state;
  }

  add(message: Message, place: GeminiPlace): void {
    if (message.role === "tool") {
      this.results.set(message.toolCallId, { message, place });
      return;
    }
    this.flushResults();
    switch (message.role) {
      case "user":
        place.loseDecoration(message);
        this.append(
          "user",
          message.parts.flatMap((part, index) =>
            encodeUserPart(part, place.at(`.content[${index}]`)),
          ),
        );
        break;
      case "system":
        this.append("user", laterInstructions(message, place));
        break;
      case "assistant":
        this.openCalls = callsOf(message);
        this.append("model", encodeModelTurn(message, place));
    }
  }

  finish(): JsonObject[] {
    this.flushResults();
    return this.contents.map(({ role, parts }) => ({ role, parts }));
  }

  private append(role: "user" | "model", parts: JsonObject[]): void {
    if (parts.length === 0) return;
    const last = this.contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else this.contents.push({ role, parts });
  }

  /** One result for each call, in the order of the calls: Gemini counts them and may join them by order. */
  private flushResults(): void {
    const attachments: JsonObject[] = [];
    const responses = this.openCalls.flatMap((call) => {
      const held = this.results.get(call.id);
      return held === undefined ? [] : [this.functionResponse(call, { held, attachments })];
    });
    this.append("user", [...responses, ...attachments]);
    this.openCalls = [];
    this.results.clear();
  }

  private functionResponse(
    call: ToolCallPart,
    { held, attachments }: { held: HeldResult; attachments: JsonObject[] },
  ): JsonObject {
    const { message, place } = held;
    place.loseDecoration({ cache: message.cache, extensions: message.extensions });
    const texts = message.parts.map((part, index) => {
      const partPlace = place.at(`.content[${index}]`);
      const encoded = encodeUserPart(part, partPlace);
      if (part.type === "text") return part.text;
      attachments.push(...encoded);
      partPlace.lose("results carry text alone; sent beside them");
      this.imageCount += 1;
      return `[${part.type} ${this.imageCount} attached below]`;
    });
    const text = texts.join("\n");
    return {
      functionResponse: {
        ...(this.state.traits.callIds && { id: call.id }),
        name: this.state.wireName(call),
        response: message.isError === true ? { error: text } : { output: text },
      },
    };
  }
}

const callsOf = (message: AssistantMessage): ToolCallPart[] =>
  message.parts.filter((part) => part.type === "tool-call");

/** Instructions keep their place in the conversation; moving them to its head would change their meaning. */
function laterInstructions(message: SystemMessage, place: GeminiPlace): JsonObject[] {
  const text = systemParts(message, place)
    .map((part) => String(part.text))
    .join("\n\n");
  return textParts(text === "" ? "" : `<system-reminder>\n${text}\n</system-reminder>`);
}
