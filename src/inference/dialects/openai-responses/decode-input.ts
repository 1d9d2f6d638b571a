import type { Extensions } from "../../canonical/extensions.ts";
import type { JsonValue } from "../../canonical/json.ts";
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  ToolMessage,
} from "../../canonical/message.ts";
import type { Tool, ToolCallPart, ToolKind } from "../../canonical/tool.ts";
import { badRequest, RequestFields } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";
import {
  contentParts,
  decodeAssistantPart,
  decodeInstructions,
  decodeResultPart,
  decodeUserPart,
} from "./decode-content.ts";
import { decodeTool } from "./decode-tools.ts";
import { decodeReasoningItem, type CallSignature } from "./reasoning-item.ts";

const knownMessageFields = new Set(["type", "role", "content", "id", "status", "phase"]);
const knownCallFields = new Set([
  "type",
  "id",
  "status",
  "call_id",
  "name",
  "arguments",
  "input",
  "namespace",
]);
const knownOutputFields = new Set(["type", "id", "status", "call_id", "output"]);

/** A conversation with the tools that items of it brought along. */
export interface DecodedInput {
  messages: Message[];
  tools: Tool[];
}

/** `instructions` and `input` as messages; items of the model that follow each other are one turn. */
export function decodeInput(body: RequestFields): DecodedInput {
  const decoder = new InputDecoder();
  const instructions = body.string("instructions");
  if (instructions)
    decoder.messages.push({ role: "system", parts: [{ type: "text", text: instructions }] });
  const { input } = body.object;
  if (typeof input === "string") {
    decoder.messages.push({
      role: "user",
      parts: input === "" ? [] : [{ type: "text", text: input }],
    });
  } else {
    for (const item of body.nestedList("input") ?? []) decoder.add(item);
  }
  return { messages: decoder.finish(), tools: decoder.tools };
}

/** Reads item by item; what the model made is gathered until somebody else speaks. */
class InputDecoder {
  readonly messages: Message[] = [];
  readonly tools: Tool[] = [];
  private turn: AssistantPart[] = [];
  private turnExtensions: Extensions | undefined;
  private hasMessage = false;
  private readonly signatures = new Map<string, CallSignature>();

  add(item: RequestFields): void {
    const type = item.string("type") ?? "message";
    switch (type) {
      case "message":
        this.addMessage(item);
        break;
      case "function_call":
        this.addCall(item, "function");
        break;
      case "custom_tool_call":
        this.addCall(item, "custom");
        break;
      case "function_call_output":
        this.addResult(item, "function");
        break;
      case "custom_tool_call_output":
        this.addResult(item, "custom");
        break;
      case "reasoning":
        this.addReasoning(item);
        break;
      case "item_reference":
        throw badRequest(item.path, "names an item that is not stored here; send the item itself.");
      case "additional_tools":
        this.addTools(item);
        break;
      case "tool_search_output":
        this.addTools(item);
        this.addOpaque(item);
        break;
      default:
        this.addOpaque(item);
    }
  }

  finish(): Message[] {
    this.closeTurn();
    return this.messages;
  }

  private addMessage(item: RequestFields): void {
    const role = item.requiredString("role");
    if (role === "assistant") {
      this.addAssistantMessage(item);
      return;
    }
    this.closeTurn();
    const extensions = item.unknown("openai-responses", knownMessageFields);
    const shared = extensions && { extensions };
    switch (role) {
      case "user":
        this.messages.push({
          role,
          parts: contentParts(item, "content").map(decodeUserPart),
          ...shared,
        });
        break;
      case "system":
        this.messages.push({ role, parts: decodeInstructions(item), ...shared });
        break;
      case "developer":
        this.messages.push({
          role: "system",
          developer: true,
          parts: decodeInstructions(item),
          ...shared,
        });
        break;
      default:
        throw badRequest(item.pathOf("role"), "must be one of user, assistant, system, developer.");
    }
  }

  /** Later messages of one turn are set apart, and each part knows the phase of its message. */
  private addAssistantMessage(item: RequestFields): void {
    const phase = item.string("phase");
    const parts = contentParts(item, "content").map(decodeAssistantPart);
    parts.forEach((part, index) => {
      if (part.type !== "text") return;
      if (phase !== undefined) part.phase = phase;
      if (index === 0 && this.hasMessage) part.startsMessage = true;
    });
    this.hasMessage = true;
    this.turn.push(...parts);
    this.turnExtensions ??= item.unknown("openai-responses", knownMessageFields);
  }

  private addCall(item: RequestFields, kind: ToolKind): void {
    const id = item.requiredString("call_id");
    const { signature, provenance } = this.signatures.get(id) ?? {};
    this.turn.push(
      withoutUndefined<ToolCallPart>({
        type: "tool-call",
        kind,
        id,
        name: item.requiredString("name"),
        arguments:
          kind === "custom" ? (item.string("input") ?? "") : argumentsText(item.object.arguments),
        namespace: item.string("namespace"),
        signature,
        provenance,
        itemId: item.string("id"),
        extensions: item.unknown("openai-responses", knownCallFields),
      }),
    );
  }

  private addResult(item: RequestFields, kind: ToolKind): void {
    this.closeTurn();
    this.messages.push(
      withoutUndefined<ToolMessage>({
        role: "tool",
        toolCallId: item.requiredString("call_id"),
        parts: contentParts(item, "output").map(decodeResultPart),
        kind: kind === "custom" ? kind : undefined,
        extensions: item.unknown("openai-responses", knownOutputFields),
      }),
    );
  }

  private addReasoning(item: RequestFields): void {
    const thought = decodeReasoningItem(item.object);
    if ("callId" in thought) this.signatures.set(thought.callId, thought);
    else this.turn.push(thought);
  }

  private addTools(item: RequestFields): void {
    this.tools.push(...(item.nestedList("tools") ?? []).flatMap((tool) => decodeTool(tool)));
  }

  /** Items of no one else's: calls that the provider ran, with what came of them. */
  private addOpaque(item: RequestFields): void {
    this.turn.push({ type: "opaque", dialect: "openai-responses", value: item.object });
  }

  private closeTurn(): void {
    if (this.turn.length > 0 || this.hasMessage) {
      const extensions = this.turnExtensions;
      this.messages.push({
        role: "assistant",
        parts: this.turn,
        ...(extensions && { extensions }),
      } satisfies AssistantMessage);
    }
    this.turn = [];
    this.turnExtensions = undefined;
    this.hasMessage = false;
  }
}

/** Arguments as JSON text; some clients send the object itself, or nothing for a tool without parameters. */
export function argumentsText(value: JsonValue | undefined): string {
  if (typeof value === "string") return value.trim() === "" ? "{}" : value;
  return value === undefined || value === null ? "{}" : JSON.stringify(value);
}
