import { pictureTypeOf } from "../../../platform/kernel/picture-type.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { Loss } from "../../canonical/request.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  badRequest,
  objectsIn,
  withoutUndefined,
} from "../../dialects/shared/wire-fields.ts";

/** A request in Ollama's form as a request for chat, and what chat cannot express of it. */
interface ReshapedOllama {
  body: Record<string, JsonValue | undefined>;
  losses: readonly Loss[];
}

/** Returns a model's id without the tag `latest`, which Ollama's clients add to names. */
export const modelIdOf = (name: unknown): string =>
  typeof name === "string" ? name.replace(/:latest$/, "") : "";

/**
 * Returns which of the two a request asks for that only loads or unloads a model, which providers
 * do themselves; undefined for every other request.
 */
export function loadingAskedFor(body: JsonObject): "load" | "unload" | undefined {
  if ((asArray(body.messages) ?? []).length > 0 || (asString(body.prompt) ?? "") !== "")
    return undefined;
  // A duration of zero is a number, or a text with a unit.
  return /^0+(?:\.0+)?[a-z]*$/.test(String(body.keep_alive)) ? "unload" : "load";
}

/** Returns the chat request of `POST /api/chat`. */
export const chatOfOllama = (body: JsonObject): ReshapedOllama => ({
  body: { ...sharedFields(body), messages: messagesOf(objectsIn(body.messages)) },
  losses: lossesOf(body),
});

/** Returns the chat request of `POST /api/generate`: a system message, and the user's. */
export function chatOfGenerate(body: JsonObject): ReshapedOllama {
  const system = asString(body.system) ?? "";
  const suffix = asString(body.suffix) ?? "";
  const said = { role: "user", content: body.prompt ?? "", images: body.images };
  const instruction =
    suffix === "" ? system : `${system}\nWrite only the text before this: ${suffix}`.trim();
  return {
    body: {
      ...sharedFields(body),
      messages: messagesOf([
        ...(instruction === "" ? [] : [{ role: "system", content: instruction }]),
        said,
      ]),
    },
    losses: [
      ...lossesOf(body),
      ...["template", "context"]
        .filter((field) => body[field] !== undefined && body[field] !== "")
        .map((field) => ({ field, reason: "chat has no such field" })),
      ...(body.raw === true ? [{ field: "raw", reason: "sent as a chat" }] : []),
    ],
  };
}

/** Options of the model that chat has too, by Ollama's names. */
const optionNames: Readonly<Record<string, string>> = {
  temperature: "temperature",
  top_p: "top_p",
  top_k: "top_k",
  min_p: "min_p",
  seed: "seed",
  presence_penalty: "presence_penalty",
  frequency_penalty: "frequency_penalty",
  repeat_penalty: "repetition_penalty",
};

/** Options that concern the machine of the model, so that nothing is lost without them. */
const ofMachine = /^(?:num_|use_|low_vram|main_gpu|numa|vocab_only|f16_kv|penalize_newline)/;

function sharedFields(body: JsonObject): JsonObject {
  const options = asObject(body.options) ?? {};
  const most = asNumber(options.num_predict);
  const stop = typeof options.stop === "string" ? [options.stop] : asArray(options.stop);
  return withoutUndefined<JsonObject>({
    model: modelIdOf(body.model),
    stream: body.stream !== false,
    stream_options: body.stream === false ? undefined : { include_usage: true },
    ...Object.fromEntries(
      Object.entries(optionNames).map(([name, chatName]) => [chatName, options[name]]),
    ),
    stop: stop === undefined || stop.length === 0 ? undefined : stop,
    max_tokens: asNumber(body.max_tokens) ?? (most !== undefined && most > 0 ? most : undefined),
    tools: asArray(body.tools)?.length ? body.tools : undefined,
    response_format: formatOf(body.format),
    logprobs: body.logprobs === true ? true : undefined,
    top_logprobs: body.logprobs === true ? body.top_logprobs : undefined,
    reasoning: thinkingOf(body.think),
    provider: body.provider,
    models: body.models,
    session_id: body.session_id,
  });
}

function formatOf(format: JsonValue | undefined): JsonObject | undefined {
  if (format === undefined || format === null || format === "") return undefined;
  if (format === "json") return { type: "json_object" };
  const schema = asObject(format);
  if (schema === undefined) throw badRequest("format", 'must be "json" or a JSON Schema.');
  return { type: "json_schema", json_schema: { name: "answer", schema } };
}

function thinkingOf(think: JsonValue | undefined): JsonObject | undefined {
  if (typeof think === "string" && think !== "") return { effort: think };
  return typeof think === "boolean" ? { enabled: think } : undefined;
}

function lossesOf({ options }: JsonObject): Loss[] {
  const lost = Object.keys(asObject(options) ?? {}).filter(
    (name) => optionNames[name] === undefined && name !== "stop" && !ofMachine.test(name),
  );
  return lost.map((name) => ({ field: `options.${name}`, reason: "chat has no such field" }));
}

/** Returns the conversation in chat's form. Calls get ids, by which results are joined to them. */
function messagesOf(messages: readonly JsonObject[]): JsonObject[] {
  const open: { id: string; name: string }[] = [];
  let count = 0;
  return messages.map((message, index) => {
    const { role } = message;
    const content = asString(message.content) ?? "";
    if (role === "tool") return resultOf(message, { content, open });
    if (role === "assistant") {
      const calls = objectsIn(message.tool_calls).map((call) => {
        const { name, arguments: input } = asObject(call.function) ?? {};
        count += 1;
        const id = asString(call.id) || `call_${count}`;
        open.push({ id, name: String(name) });
        const text = typeof input === "string" ? input : JSON.stringify(input ?? {});
        return { id, type: "function", function: { name: String(name), arguments: text } };
      });
      return {
        role,
        content,
        ...(calls.length > 0 && { tool_calls: calls }),
        ...(asString(message.thinking) && { reasoning_content: message.thinking }),
      };
    }
    if (role !== "user" && role !== "system")
      throw badRequest(`messages[${index}].role`, "must be system, user, assistant or tool.");
    const images = asArray(message.images) ?? [];
    return {
      role,
      content:
        images.length === 0 ? content : [...picturesOf(images), { type: "text", text: content }],
    };
  });
}

function resultOf(
  message: JsonObject,
  { content, open }: { content: string; open: { id: string; name: string }[] },
): JsonObject {
  const name = asString(message.tool_name) ?? asString(message.name);
  const given = asString(message.tool_call_id);
  const index = open.findIndex((call) =>
    given === undefined ? name === undefined || call.name === name : call.id === given,
  );
  const [call] = index < 0 ? [] : open.splice(index, 1);
  return { role: "tool", tool_call_id: given ?? call?.id ?? "call_0", content };
}

const picturesOf = (images: readonly JsonValue[]): JsonObject[] =>
  images.map((image) => {
    const data = String(image);
    const type = pictureTypeOf(data) ?? "image/png";
    const url = data.startsWith("data:") ? data : `data:${type};base64,${data}`;
    return { type: "image_url", image_url: { url } };
  });
