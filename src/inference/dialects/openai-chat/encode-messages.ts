import type { TextPart } from "../../canonical/content.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  splitLeadingSystem,
  type Message,
  type SystemMessage,
  type ToolMessage,
  type UserMessage,
} from "../../canonical/message.ts";
import { isBillingLine } from "../billing-line.ts";
import { repairToolTurns } from "../repair-tool-turns.ts";
import { encodeAssistant } from "./encode-assistant.ts";
import { encodeText, encodeUserPart } from "./encode-content.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";

/** The conversation on the wire: tool results right after their calls, text alone in them. */
export function encodeMessages(state: EncodeState): JsonObject[] {
  const { leading, rest } = splitLeadingSystem(repairToolTurns(state.request.messages));
  const wire = state.sameDialect
    ? leading.map((message, index) => encodeSystem(message, state.at(`messages[${index}]`)))
    : encodeLeadingSystem(leading, state);
  const turns = new TurnEncoder(state, leading.length);
  for (const message of rest) turns.add(message);
  return [...wire, ...turns.finish()];
}

/** Several leading instructions as one message: many servers accept no second one. */
function encodeLeadingSystem(leading: readonly SystemMessage[], state: EncodeState): JsonObject[] {
  const parts = leading
    .flatMap((message) => message.parts)
    .filter((part) => part.text !== "" && !isBillingLine(part.text));
  if (parts.length === 0) return [];
  return [{ role: "system", content: textContent(parts, state.at("messages[0]")) }];
}

function encodeSystem(message: SystemMessage, place: EncodePlace): JsonObject {
  const { sameDialect, quirks } = place.state;
  return {
    role:
      message.developer === true && (sameDialect || quirks.developerRole === true)
        ? "developer"
        : "system",
    content: textContent(message.parts, place),
    ...named(message.name),
    ...place.extensionFields(message.extensions),
  };
}

const named = (name: string | undefined): JsonObject => (name === undefined ? {} : { name });

/**
 * Text as a plain string where it is one, or where another dialect's parts can be joined to one: many
 * servers take nothing else. Parts stay parts where cache markers stand on them.
 */
function textContent(parts: readonly TextPart[], place: EncodePlace): JsonValue {
  const wire = parts.map((part, index) => encodeText(part, place.at(`.content[${index}]`)));
  const plain = wire.every((part) => Object.keys(part).length === 2);
  if (plain && (wire.length <= 1 || !place.state.sameDialect))
    return parts.map((part) => part.text).join("\n\n");
  return wire;
}

/** Encodes turn by turn, and keeps images of tool results for the user's message after them. */
class TurnEncoder {
  private readonly state: EncodeState;
  private readonly wire: JsonObject[] = [];
  private attachments: JsonObject[] = [];
  private imageCount = 0;
  private index: number;

  constructor(state: EncodeState, firstIndex: number) {
    this.state = state;
    this.index = firstIndex;
  }

  add(message: Message): void {
    const place = this.state.at(`messages[${this.index}]`);
    this.index += 1;
    switch (message.role) {
      case "tool":
        this.wire.push(this.toolMessage(message, place));
        break;
      case "user":
        this.wire.push(this.userMessage(message, place));
        break;
      case "assistant":
        this.flushAttachments();
        this.wire.push(...encodeAssistant(message, place));
        break;
      case "system":
        this.flushAttachments();
        this.wire.push(this.laterSystem(message, place));
    }
  }

  finish(): JsonObject[] {
    this.flushAttachments();
    return this.wire;
  }

  private userMessage(message: UserMessage, place: EncodePlace): JsonObject {
    const content = this.attachments;
    this.attachments = [];
    message.parts.forEach((part, index) =>
      content.push(...encodeUserPart(part, place.at(`.content[${index}]`))),
    );
    const first = content[0];
    const plain = content.length === 1 && first?.type === "text" && Object.keys(first).length === 2;
    const told = content.length === 0 ? "" : plain ? first.text : content;
    if (message.name === undefined && message.extensions === undefined)
      return { role: "user", content: told };
    return {
      role: "user",
      content: told,
      ...named(message.name),
      ...place.extensionFields(message.extensions),
    };
  }

  private toolMessage(message: ToolMessage, place: EncodePlace): JsonObject {
    const { state } = this;
    const content = state.sameDialect
      ? sameDialectResult(message, place)
      : this.resultText(message, place);
    const extensions = place.extensionFields(message.extensions);
    if (state.request.legacyFunctions === true)
      return { role: "function", name: message.name ?? "", content, ...extensions };
    return {
      role: "tool",
      tool_call_id: message.toolCallId,
      content,
      ...named(message.name),
      ...extensions,
    };
  }

  /** Tool messages carry text alone; what else a result holds follows in the next user message. */
  private resultText(message: ToolMessage, place: EncodePlace): string {
    const texts = message.parts.map((part, index) => {
      if (part.type === "text") return part.text;
      const partPlace = place.at(`.content[${index}]`);
      const encoded = encodeUserPart(part, partPlace);
      partPlace.lose("tool results carry text alone; sent in a user message after them");
      this.imageCount += 1;
      const name = `${part.type} ${this.imageCount}`;
      // Several results may have attachments, and the user's own follow them in the same message.
      this.attachments.push(
        { type: "text", text: `[${name}, from the result of tool call ${message.toolCallId}]` },
        ...encoded,
      );
      return `[${name} attached below]`;
    });
    if (message.cache !== undefined) this.state.cacheFields(message.cache);
    return (message.isError === true ? "Error: " : "") + texts.join("\n");
  }

  private flushAttachments(): void {
    if (this.attachments.length === 0) return;
    this.wire.push({ role: "user", content: this.attachments });
    this.attachments = [];
  }

  /** Instructions keep their place in the conversation; moving them to its head would change their meaning. */
  private laterSystem(message: SystemMessage, place: EncodePlace): JsonObject {
    if (this.state.quirks.systemOnlyFirst !== true) return encodeSystem(message, place);
    const text = message.parts.map((part) => part.text).join("\n\n");
    return { role: "user", content: `<system-reminder>\n${text}\n</system-reminder>` };
  }
}

function sameDialectResult(message: ToolMessage, place: EncodePlace): JsonValue {
  const texts = message.parts.filter((part): part is TextPart => part.type === "text");
  if (texts.length === message.parts.length) return textContent(texts, place);
  return message.parts.flatMap((part, index) =>
    encodeUserPart(part, place.at(`.content[${index}]`)),
  );
}
