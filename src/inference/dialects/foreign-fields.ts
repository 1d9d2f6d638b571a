import type { AssistantMessage, Message } from "../canonical/message.ts";
import type { EncodePlace, EncodeState } from "./encode-state.ts";

/**
 * Declares the fields that only the client's dialect has, wherever an encoder has no place for
 * them, so that none is dropped silently. A field is declared once, whoever declares it.
 */
export function loseForeignFields(state: EncodeState): void {
  const { request, conversation } = state;
  const { reasoning, tools = [], webSearch } = request;
  state.at(reasoningField(state)).extensionFields(reasoning?.extensions);
  if (reasoning?.mode !== undefined && reasoning.mode !== "adaptive")
    state.lose(
      `${reasoningField(state)}.type`,
      `${reasoning.mode} is a rule of ${request.dialect}`,
    );
  state.at("web_search_options").extensionFields(webSearch?.extensions);
  tools.forEach((tool, index) => {
    if (tool.type !== "hosted") state.at(`tools[${index}]`).extensionFields(tool.extensions);
  });
  conversation.forEach((message, index) => loseOfMessage(message, state.at(`messages[${index}]`)));
}

/** Returns the field in which the client's dialect asks for reasoning. */
const reasoningField = ({ request }: EncodeState): string =>
  request.dialect === "anthropic-messages" ? "thinking" : "reasoning";

function loseOfMessage(message: Message, place: EncodePlace): void {
  place.extensionFields(message.extensions);
  if (message.role !== "tool" && message.name !== undefined)
    place.at(".name").lose(`${place.state.dialect} has no such field`);
  let calls = 0;
  (message as AssistantMessage).parts.forEach((part, index) => {
    const at = part.type === "tool-call" ? `.tool_calls[${calls++}]` : `.content[${index}]`;
    if ("extensions" in part) place.at(at).extensionFields(part.extensions);
    if (part.type === "text" && part.phase !== undefined) losePhase(place.at(at));
  });
}

/** Declares the phase of a message as lost: Responses has it on the message, not on its texts. */
function losePhase({ state, path }: EncodePlace): void {
  const written = state.written(path).replace(/\.content(?:\[\d+\])?$/, "");
  state.lose(`${written}.phase`, "a field of openai-responses");
}
