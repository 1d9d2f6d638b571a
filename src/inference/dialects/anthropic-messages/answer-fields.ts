import type { Annotation, CacheMarker, OpaquePart } from "../../canonical/message.ts";
import type { Finish, FinishReason } from "../../canonical/response.ts";
import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import {
  asArray,
  asNumber,
  asObject,
  asString,
  withoutUndefined,
  RequestFields,
} from "../shared/wire-fields.ts";
import type { Extensions } from "../../canonical/dialect-id.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import { claudeAbilities } from "../shared/reasoning-rules.ts";
import { legalName } from "../shared/tools.ts";
import { SearchReader } from "../shared/extras/web-search.ts";

/**
 * Returns members that the canonical form has no name for. Null means absent to Anthropic, whose
 * SDKs write it into much that clients replay, so it is not kept.
 */
export const extensionsOf = (
  fields: RequestFields,
  known: ReadonlySet<string>,
): Extensions | undefined => ownFields(fields.object, known);

/** Returns the same for an object of an answer. */
export function ownFields(object: JsonObject, known: ReadonlySet<string>): Extensions | undefined {
  let own: Record<string, JsonValue> | undefined;
  for (const key in object) {
    const value = object[key];
    if (!known.has(key) && value !== undefined && value !== null) (own ??= {})[key] = value;
  }
  return own && { dialect: "anthropic-messages", fields: own };
}

/** Returns the fields of this dialect; none where they are another's. */
export const fieldsOfOwn = (extensions: Extensions | undefined): JsonObject =>
  extensions?.dialect === "anthropic-messages" ? extensions.fields : {};

/** Returns the cache marker of a block or tool; undefined when it has none. */
export function decodeCache(object: JsonObject): CacheMarker | undefined {
  const marker = asObject(object.cache_control);
  if (marker === undefined) return undefined;
  const { ttl } = marker;
  return ttl === "5m" || ttl === "1h" ? { ttl } : {};
}

/**
 * Returns the wire field of a cache marker. OpenAI's half hour has no equivalent here and becomes
 * the default.
 */
export function cacheFields(cache: CacheMarker | undefined): JsonObject {
  if (cache === undefined) return {};
  const { ttl } = cache;
  return { cache_control: { type: "ephemeral", ...((ttl === "5m" || ttl === "1h") && { ttl }) } };
}

/**
 * Returns the definition of a tool in a block of later instructions (beta
 * `mid-conversation-tool-changes`).
 */
function definitionIn(block: unknown): JsonObject | undefined {
  const { type, tool } = asObject(block) ?? {};
  const added = type === "tool_addition" ? asObject(tool) : undefined;
  return added?.type === "tool_definition" ? asObject(added.definition) : undefined;
}

/**
 * Returns tool definitions within the conversation. Upstreams of other dialects are offered them
 * from its start.
 */
export function laterDefinitions(body: RequestFields): RequestFields[] {
  return (asArray(body.object.messages) ?? []).flatMap((message, index) => {
    const { role, content } = asObject(message) ?? {};
    const blocks = role === "system" ? (asArray(content) ?? []) : [];
    return blocks.flatMap((block, position) => {
      const definition = definitionIn(block);
      return definition === undefined
        ? []
        : [
            new RequestFields(
              definition,
              `messages[${index}].content[${position}].tool.definition`,
            ),
          ];
    });
  });
}

/**
 * Returns the names of tools that the conversation itself defines, so that they are not offered
 * twice in this dialect.
 */
export const laterToolNames = ({ messages }: CanonicalRequest): ReadonlySet<string> =>
  new Set(
    messages.flatMap((message) => {
      const { content } = message.role === "system" ? fieldsOfOwn(message.extensions) : {};
      return (asArray(content) ?? []).flatMap((block) => asString(definitionIn(block)?.name) ?? []);
    }),
  );

/**
 * Returns whether an upstream takes instructions within the conversation, as Claude does from 4.8
 * on. Source: platform.claude.com, build-with-claude/mid-conversation-system-messages (2026-05).
 */
export const takesLaterSystem = (
  upstreamModel: string,
  { systemOnlyFirst }: DialectDeviations,
): boolean => systemOnlyFirst !== true && !claudeAbilities(upstreamModel).refusesLaterSystem;

const maxLength = 64;

/**
 * Returns a call's id in the form that Anthropic and its clients accept, `^[a-zA-Z0-9_-]+$`. The
 * same id always maps to the same result, so that a call and its result still match when they come
 * back in a later turn.
 */
export const legalCallId = (id: string): string => legalName(id, maxLength);

/** Returns one event as SSE text. Anthropic's clients drop events without an `event:` line. */
export const frame = (event: JsonObject): string =>
  `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;

/**
 * Returns the event that adds a piece of text to a block, equal to `frame` but faster: most of a
 * stream's events are this one.
 */
export const deltaFrame = (
  index: number,
  { type, key, json }: { type: string; key: string; json: string },
): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},` +
  `"delta":{"type":"${type}","${key}":${json}}}\n\n`;

/** The frame that is sent while the upstream is silent, as Anthropic writes it. */
export const pingFrame = 'event: ping\ndata: {"type": "ping"}\n\n';

const reasonByWord: ReadonlyMap<string, FinishReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop_sequence"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["pause_turn", "pause"],
  ["compaction", "pause"],
  ["refusal", "refusal"],
  // Reasons of other dialects that compatible servers pass through.
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** Returns the reported end; undefined when the reason is missing or unknown. */
export function decodeFinish(fields: JsonObject): Finish | undefined {
  const reason = reasonByWord.get(asString(fields.stop_reason) ?? "");
  if (reason === undefined) return undefined;
  const details = asObject(fields.stop_details);
  return withoutUndefined<Finish>({
    reason,
    stopSequence: asString(fields.stop_sequence) || undefined,
    explanation: asString(details?.explanation),
    category: asString(details?.category),
  });
}

const wordByReason: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
  refusal: "refusal",
  pause: "pause_turn",
  error: "end_turn",
};

/**
 * Returns the end of an answer that declined in words: a plain stop in OpenAI's dialects, for which
 * Messages has a reason of its own.
 */
export const withRefusal = (finish: Finish, refused: boolean): Finish =>
  refused && finish.reason === "stop" ? { ...finish, reason: "refusal" } : finish;

/** Returns the ending fields of an answer, or of a stream's `message_delta`. */
export function encodeFinish({ reason, stopSequence, explanation, category }: Finish): JsonObject {
  const isExplained = explanation !== undefined || category !== undefined;
  return {
    stop_reason: wordByReason[reason],
    stop_sequence: reason === "stop_sequence" ? (stopSequence ?? null) : null,
    stop_details: isExplained
      ? { type: "refusal", category: category ?? null, explanation: explanation ?? null }
      : null,
  };
}

type Unit = Extract<Annotation, { type: "document" }>["unit"];

/** The kinds of citations that point into a document, with the names of their two bounds. */
const locations: ReadonlyMap<string, { unit: Unit; start: string; end: string }> = new Map([
  ["char_location", { unit: "character", start: "start_char_index", end: "end_char_index" }],
  ["page_location", { unit: "page", start: "start_page_number", end: "end_page_number" }],
  ["content_block_location", { unit: "block", start: "start_block_index", end: "end_block_index" }],
]);

const knownFields = new Set([
  "type",
  "cited_text",
  "document_index",
  "document_title",
  "url",
  "title",
  ...[...locations.values()].flatMap(({ start, end }) => [start, end]),
]);

/** Decodes the citations of a text block; undefined when it has none. */
export function decodeCitations(value: unknown): Annotation[] | undefined {
  const annotations = (asArray(value) ?? []).flatMap((entry) => decodeCitation(entry) ?? []);
  return annotations.length === 0 ? undefined : annotations;
}

/** Decodes one citation; kinds that only this dialect has are kept as they are. */
export function decodeCitation(value: JsonValue): Annotation | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const type = asString(fields.type) ?? "";
  const url = asString(fields.url);
  const shared = {
    citedText: asString(fields.cited_text),
    extensions: ownFields(fields, knownFields),
  };
  if (type === "web_search_result_location" && url !== undefined) {
    return withoutUndefined<Extract<Annotation, { type: "url" }>>({
      type: "url",
      url,
      title: asString(fields.title),
      ...shared,
    });
  }
  const location = locations.get(type);
  const documentIndex = asNumber(fields.document_index);
  const start = location && asNumber(fields[location.start]);
  const end = location && asNumber(fields[location.end]);
  if (
    location === undefined ||
    documentIndex === undefined ||
    start === undefined ||
    end === undefined
  ) {
    return { type: "opaque", dialect: "anthropic-messages", value: fields };
  }
  return withoutUndefined<Extract<Annotation, { type: "document" }>>({
    type: "document",
    documentIndex,
    title: asString(fields.document_title),
    unit: location.unit,
    start,
    end,
    ...shared,
  });
}

/**
 * Returns the blocks of a part that only its own dialect has; none for those of other dialects, but
 * for a search, whose pages no one has sealed.
 */
export function opaqueBlocks(part: OpaquePart): JsonObject[] {
  if (part.dialect === "anthropic-messages") return [part.value];
  const search = new SearchReader().read(part);
  if (search === undefined) return [];
  // Anthropic takes no hyphen in ids of its own tools, and the search may go back to it.
  const id = legalName(`srvtoolu_${search.id}`, maxLength).replaceAll("-", "_");
  const pages = search.urls.map((url) => ({
    type: "web_search_result",
    url,
    title: url,
    encrypted_content: "",
    page_age: null,
  }));
  return [
    {
      type: "server_tool_use",
      id,
      name: "web_search",
      input: { query: search.queries.join(" | ") },
    },
    {
      type: "web_search_tool_result",
      tool_use_id: id,
      content: search.failed
        ? { type: "web_search_tool_result_error", error_code: "unavailable" }
        : pages,
    },
  ];
}

/** Encodes a citation for a client; none for kinds of other dialects. */
export function encodeCitation(annotation: Annotation): JsonObject[] {
  switch (annotation.type) {
    case "opaque":
      return annotation.dialect === "anthropic-messages" ? [annotation.value] : [];
    case "url":
      return [
        {
          type: "web_search_result_location",
          url: annotation.url,
          title: annotation.title ?? null,
          cited_text: annotation.citedText ?? "",
          encrypted_index: "",
          ...fieldsOfOwn(annotation.extensions),
        },
      ];
    case "document": {
      const { documentIndex, title, citedText, unit, start, end } = annotation;
      const found = [...locations].find(([, location]) => location.unit === unit);
      if (found === undefined) return [];
      const [type, names] = found;
      return [
        {
          type,
          cited_text: citedText ?? "",
          document_index: documentIndex,
          document_title: title ?? null,
          [names.start]: start,
          [names.end]: end,
          ...fieldsOfOwn(annotation.extensions),
        },
      ];
    }
  }
}

/**
 * Encodes a citation in a replayed turn. A web result has to come back with the index that its
 * maker sealed; one from another model has none, and is left out.
 */
export const replayCitation = (annotation: Annotation): JsonObject[] =>
  encodeCitation(annotation).filter((citation) => citation.encrypted_index !== "");

/**
 * Returns the stop reason that fits the content. Servers that imitate Anthropic may end a turn that
 * calls tools as if it called none, or without a reason, and clients would then not run the tools.
 */
export function fittingEnd(stopReason: string | null, callsTools: boolean): string {
  if (stopReason === null || stopReason === "") return callsTools ? "tool_use" : "end_turn";
  if (callsTools && stopReason === "end_turn") return "tool_use";
  return !callsTools && stopReason === "tool_use" ? "end_turn" : stopReason;
}
