import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  splitLeadingSystem,
  type AssistantMessage,
  type Message,
  type SystemMessage,
  type ToolMessage,
  type UserMessage,
} from "../../canonical/message.ts";
import type { EncodePlace, EncodeState } from "../encode-state.ts";
import { repairToolTurns } from "../repair-tool-turns.ts";
import { asArray, unsupportedContent } from "../request-fields.ts";
import { cacheFields } from "./cache-fields.ts";
import { encodeAssistant } from "./encode-assistant.ts";
import { encodeText, encodeUserPart, plainOrBlocks } from "./encode-blocks.ts";
import { legalCallId } from "./legal-call-id.ts";

/** The conversation on the wire, with its leading instructions apart. */
export function encodeMessages(state: EncodeState): {
  system: JsonValue | undefined;
  messages: JsonObject[];
} {
  const { leading, rest } = splitLeadingSystem(repairToolTurns(state.request.messages));
  const system = leading.flatMap((message, index) =>
    encodeSystem(message, state.at(`messages[${index}]`)),
  );
  const turns = new TurnEncoder(state, leading.length);
  for (const message of rest) turns.add(message);
  const messages = turns.finish();
  if (messages.length + system.length === 0)
    throw unsupportedContent("messages", "say nothing; send a message with content.");
  // Anthropic needs a message; instructions alone are asked as the user's.
  if (messages.length === 0)
    return { system: undefined, messages: [{ role: "user", content: plainOrBlocks(system) }] };
  return { system: system.length === 0 ? undefined : plainOrBlocks(system), messages };
}

const encodeSystem = (message: SystemMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodeText(part, place.at(`.content[${index}]`)));

/** A message of the wire that may still grow. */
interface Turn {
  role: "user" | "assistant" | "system";
  blocks: JsonObject[];
  fields: JsonObject;
  /** Nothing but results of tools so far: what the user says next belongs behind them. */
  resultsOnly: boolean;
}

/** What stands before a conversation that the model began. */
const openingTurn: Turn = {
  role: "user",
  blocks: [{ type: "text", text: "(The conversation begins.)" }],
  fields: {},
  resultsOnly: false,
};

/** Encodes message by message; those of one side that follow each other become one where another dialect wrote them. */
class TurnEncoder {
  private readonly state: EncodeState;
  private readonly turns: Turn[] = [];
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
        this.push({
          role: "user",
          blocks: [encodeResult(message, place)],
          fields: {},
          resultsOnly: true,
        });
        break;
      case "user":
        this.push({
          ...sharedFields(message, place),
          role: "user",
          blocks: encodeUser(message, place),
        });
        break;
      case "assistant":
        this.push({
          ...sharedFields(message, place),
          role: "assistant",
          blocks: encodeAssistant(message, place),
        });
        break;
      case "system":
        this.push(this.laterSystem(message, place));
    }
  }

  finish(): JsonObject[] {
    const {
      turns,
      state: { sameDialect },
    } = this;
    const last = turns.at(-1);
    if (last?.role === "assistant") trimEnd(last.blocks);
    const filled = turns.filter(({ blocks }) => blocks.length > 0);
    if (filled[0]?.role === "assistant" && !sameDialect) filled.unshift(openingTurn);
    return filled.map(({ role, blocks, fields }) => ({
      role,
      content: plainOrBlocks(blocks),
      ...fields,
    }));
  }

  private push(turn: Turn): void {
    const last = this.turns.at(-1);
    const joins =
      last?.role === turn.role &&
      turn.role !== "system" &&
      (!this.state.sameDialect || last.resultsOnly);
    if (turn.blocks.length === 0 && !this.state.sameDialect) return;
    if (!joins) {
      this.turns.push(turn);
      return;
    }
    last.blocks.push(...turn.blocks);
    last.fields = { ...last.fields, ...turn.fields };
    last.resultsOnly &&= turn.resultsOnly;
  }

  /**
   * Instructions keep their place in the conversation; at its head they would mean something else, and
   * spoil the prompt cache. Where they stand is bound by rules that only this dialect's own clients
   * know, so those of others are told as the user's.
   */
  private laterSystem(message: SystemMessage, place: EncodePlace): Turn {
    const { sameDialect, quirks } = this.state;
    const { content, ...fields } = place.extensionFields(message.extensions);
    const blocks = encodeSystem(message, place);
    if (sameDialect && quirks.systemOnlyFirst !== true) {
      return {
        role: "system",
        blocks: [...blocks, ...((asArray(content) ?? []) as readonly JsonObject[])],
        fields,
        resultsOnly: false,
      };
    }
    const text = blocks.map((block) => String(block.text)).join("\n\n");
    const reminder =
      text === "" ? [] : [{ type: "text", text: `<system-reminder>\n${text}\n</system-reminder>` }];
    return { role: "user", blocks: reminder, fields: {}, resultsOnly: false };
  }
}

function sharedFields(
  message: UserMessage | AssistantMessage,
  place: EncodePlace,
): Pick<Turn, "fields" | "resultsOnly"> {
  if (message.name !== undefined) place.at(".name").lose("messages has no such field");
  return { fields: place.extensionFields(message.extensions), resultsOnly: false };
}

const encodeUser = (message: UserMessage, place: EncodePlace): JsonObject[] =>
  message.parts.flatMap((part, index) => encodeUserPart(part, place.at(`.content[${index}]`)));

function encodeResult(message: ToolMessage, place: EncodePlace): JsonObject {
  const blocks = message.parts.flatMap((part, index) =>
    encodeUserPart(part, place.at(`.content[${index}]`)),
  );
  return {
    type: "tool_result",
    tool_use_id: legalCallId(message.toolCallId),
    ...(blocks.length > 0 && { content: plainOrBlocks(blocks) }),
    ...(message.isError !== undefined && { is_error: message.isError }),
    ...cacheFields(message.cache),
    ...place.extensionFields(message.extensions),
  };
}

/** Anthropic refuses a last turn of the model that ends in white space. */
function trimEnd(blocks: JsonObject[]): void {
  const last = blocks.at(-1);
  if (last?.type === "text" && typeof last.text === "string")
    blocks[blocks.length - 1] = { ...last, text: last.text.trimEnd() };
}
