import type { Body, ChatSurface } from "./planned-body.ts";

/** What a request asks for, in any dialect. */
export interface Wanted {
  /** Ids in the order in which they may serve. */
  models: string[];
  /** Some of `tools`, `JSON`, `images` and `temperature`. */
  extras: Set<string>;
  maxOutputTokens?: number;
  effort?: string;
  /** The name of the conversation, where it has one. */
  session?: string | undefined;
  /** Fields of the `provider` object, as YAML. */
  fields: string[];
  /** Other members of the body, as YAML. */
  beside: string[];
}

const png = "data:image/png;base64,iVBORw0KGgo=";
const pngSource = {
  type: "base64",
  media_type: "image/png",
  data: png.slice(png.indexOf(",") + 1),
};
const schema = { type: "object", properties: {} };
const fieldsOf = (written: readonly string[]): Body =>
  written.length === 0 ? {} : { ...(Bun.YAML.parse(`{${written.join(", ")}}`) as Body) };

/** Returns the members that all dialects write alike. */
function shared({ models, fields, beside, extras, session }: Wanted): Body {
  return {
    model: models[0],
    ...(models.length > 1 && { models: models.slice(1) }),
    ...(session !== undefined && { session_id: session }),
    ...(fields.length > 0 && { provider: fieldsOf(fields) }),
    ...(extras.has("temperature") && { temperature: 0.5 }),
    ...fieldsOf(beside),
  };
}

/** Returns the one turn of the conversation, with an image after its text where one is given. */
const turn = (text: Body, image: Body | false) => [
  { role: "user", content: image === false ? [text] : [text, image] },
];

const spellings: Readonly<Record<ChatSurface, (wanted: Wanted) => Body>> = {
  chat: ({ extras, maxOutputTokens, effort }) => ({
    messages: turn(
      { type: "text", text: "hi" },
      extras.has("images") && { type: "image_url", image_url: { url: png } },
    ),
    ...(extras.has("tools") && {
      tools: [{ type: "function", function: { name: "look", parameters: schema } }],
    }),
    ...(extras.has("JSON") && { response_format: { type: "json_object" } }),
    ...(maxOutputTokens !== undefined && { max_tokens: maxOutputTokens }),
    ...(effort !== undefined && { reasoning_effort: effort }),
  }),
  messages: ({ extras, maxOutputTokens = 100, effort }) => ({
    messages: turn(
      { type: "text", text: "hi" },
      extras.has("images") && { type: "image", source: pngSource },
    ),
    max_tokens: maxOutputTokens,
    ...(extras.has("tools") && { tools: [{ name: "look", input_schema: schema }] }),
    ...((extras.has("JSON") || effort !== undefined) && {
      output_config: {
        ...(extras.has("JSON") && { format: { type: "json_schema", schema } }),
        ...(effort !== undefined && { effort }),
      },
    }),
  }),
  responses: ({ extras, maxOutputTokens, effort }) => ({
    input: turn(
      { type: "input_text", text: "hi" },
      extras.has("images") && { type: "input_image", image_url: png },
    ),
    ...(extras.has("tools") && { tools: [{ type: "function", name: "look", parameters: schema }] }),
    ...(extras.has("JSON") && { text: { format: { type: "json_object" } } }),
    ...(maxOutputTokens !== undefined && { max_output_tokens: maxOutputTokens }),
    ...(effort !== undefined && { reasoning: { effort } }),
  }),
};

/** Returns a request as clients of a surface write it. */
export const spellBody = (surface: ChatSurface, wanted: Wanted): Body => ({
  ...shared(wanted),
  ...spellings[surface](wanted),
});
