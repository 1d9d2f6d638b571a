import type { CacheMarker } from "./message.ts";
import type { DialectId, Extensions } from "./dialect-id.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Provenance } from "./reasoning.ts";

/** A tool whose input is a JSON object that a schema describes. */
export interface FunctionTool {
  type: "function";
  name: string;
  description?: string;
  /** JSON Schema of the arguments; absent means none. */
  parameters?: JsonObject;
  strict?: boolean;
  /** Known to the model by name only until a tool search loads it. */
  deferred?: boolean;
  /** Group that the name belongs to (Responses). */
  namespace?: string;
  inputExamples?: readonly JsonValue[];
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** What the free text of a custom tool must look like. */
type CustomToolFormat = { type: "text" } | { type: "grammar"; syntax: string; definition: string };

/** A tool whose input is free text, possibly bound by a grammar. */
export interface CustomTool {
  type: "custom";
  name: string;
  description?: string;
  format?: CustomToolFormat;
  deferred?: boolean;
  namespace?: string;
  cache?: CacheMarker;
  extensions?: Extensions;
}

/** A tool that the provider runs itself, kept as its dialect wrote it. */
interface HostedTool {
  type: "hosted";
  dialect: DialectId;
  value: JsonObject;
  cache?: CacheMarker;
}

/** A tool of any kind. */
export type Tool = FunctionTool | CustomTool | HostedTool;

/** Kinds of tools that the caller runs. */
export type ToolKind = "function" | "custom";

/** A tool as `allowed_tools` names it; hosted ones are kept as their dialect wrote them. */
export type AllowedTool = { type: ToolKind; name: string } | { type: "hosted"; value: JsonObject };

/** Which tools the model may or must call. */
export type ToolChoice =
  | { type: "auto" | "none" | "required" }
  | { type: "tool"; kind: ToolKind; name: string }
  | { type: "allowed"; mode: "auto" | "required"; tools: readonly AllowedTool[] }
  | { type: "hosted"; dialect: DialectId; value: JsonObject };

/** A call that the model made. */
export interface ToolCallPart {
  type: "tool-call";
  kind: ToolKind;
  /** Joins the call with its result. */
  id: string;
  name: string;
  /**
   * JSON text of an object for a function, the input itself for a custom tool. Never empty for a
   * function.
   */
  arguments: string;
  namespace?: string;
  /** Gemini's thought signature, which has to come back on the same call. */
  signature?: string;
  /** Who made the signature. */
  provenance?: Provenance;
  /** Id of the item around the call where the dialect has one beside the call id (Responses). */
  itemId?: string;
  cache?: CacheMarker;
  extensions?: Extensions;
}
