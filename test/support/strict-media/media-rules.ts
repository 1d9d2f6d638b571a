/** A request about pictures or sound as a strict vendor reads it. */
export interface MediaRequest {
  path: string;
  headers: Headers;
  /** Members of JSON, or fields of a form without brackets; files are their names. */
  fields: Readonly<Record<string, unknown>>;
  /** Whether the body is a form. */
  isForm: boolean;
  query: URLSearchParams;
}

/** A fact about what a vendor refuses, and where it was read. */
export interface MediaRule {
  vendor: string;
  id: string;
  when(request: MediaRequest): boolean;
  status: number;
  /** A page with the date on which it was read; `recalled` where no page was read. */
  source: string;
}

const images = /\/images\/(?:generations|edits)$/;
const isSet =
  (name: string) =>
  ({ fields }: MediaRequest): boolean =>
    fields[name] !== undefined;
const unknownField =
  (path: RegExp, known: readonly string[]) =>
  ({ path: asked, fields }: MediaRequest): boolean =>
    path.test(asked) && Object.keys(fields).some((name) => !known.includes(name));
const types = "npm openai 7.55, types of images and audio (2026-11-28)";

const openaiImageFields = [
  "background",
  "complexity",
  "frame_count",
  "frame_duration_ms",
  "image",
  "input_fidelity",
  "mask",
  "model",
  "moderation",
  "n",
  "output_compression",
  "output_format",
  "partial_images",
  "prompt",
  "quality",
  "safety_identifier",
  "size",
  "stream",
  "svg",
  "user",
];

/** Every known refusal, by vendor. */
export const mediaRules: readonly MediaRule[] = [
  {
    vendor: "openai",
    id: "image-response-format",
    when: (request) => images.test(request.path) && isSet("response_format")(request),
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "image-fields",
    when: unknownField(images, openaiImageFields),
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "edits-are-forms",
    when: ({ path, isForm }) => path.endsWith("/edits") && !isForm,
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "fidelity-of-gpt-image-2",
    when: ({ fields }) =>
      fields["model"] === "gpt-image-2" && fields["input_fidelity"] !== undefined,
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "4o-json-only",
    when: ({ path, fields }) =>
      path.endsWith("/transcriptions") &&
      fields["model"] === "gpt-4o-transcribe" &&
      fields["response_format"] !== "json",
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "granularities",
    when: ({ fields }) =>
      fields["timestamp_granularities"] !== undefined &&
      fields["response_format"] !== "verbose_json",
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "audio-forms",
    when: ({ path, isForm }) => path.endsWith("/transcriptions") && !isForm,
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "audio-file-name",
    when: ({ path, fields }) =>
      path.endsWith("/transcriptions") &&
      !/\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/.test(String(fields["file"])),
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "translation-language",
    when: ({ path, fields }) => path.endsWith("/translations") && fields["language"] !== undefined,
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "tts-1-instructions",
    when: ({ fields }) => fields["model"] === "tts-1" && fields["instructions"] !== undefined,
    status: 400,
    source: types,
  },
  {
    vendor: "openai",
    id: "tts-1-events",
    when: ({ fields }) => fields["model"] === "tts-1" && fields["stream_format"] === "sse",
    status: 400,
    source: types,
  },
  {
    vendor: "xai",
    id: "image-fields",
    when: unknownField(images, [
      "model",
      "prompt",
      "n",
      "response_format",
      "aspect_ratio",
      "resolution",
      "image",
      "images",
      "user",
    ]),
    status: 400,
    source: "docs.x.ai/docs/guides/image-generations; recalled",
  },
  {
    vendor: "xai",
    id: "json-only",
    when: ({ isForm }) => isForm,
    status: 415,
    source: "docs.x.ai; recalled",
  },
  {
    vendor: "together",
    id: "image-fields",
    when: unknownField(images, [
      "model",
      "prompt",
      "n",
      "width",
      "height",
      "steps",
      "seed",
      "guidance_scale",
      "negative_prompt",
      "response_format",
      "output_format",
      "reference_images",
      "image_loras",
      "disable_safety_checker",
    ]),
    status: 400,
    source: "npm together-ai 0.52, images.d.ts (2026-11-28)",
  },
  {
    vendor: "together",
    id: "base64",
    when: ({ fields }) => fields["response_format"] === "b64_json",
    status: 422,
    source: "npm together-ai 0.52, images.d.ts (2026-11-28)",
  },
  {
    vendor: "google",
    id: "unknown-members",
    when: unknownField(/:(?:predict|generateContent)$/, [
      "contents",
      "generationConfig",
      "instances",
      "parameters",
    ]),
    status: 400,
    source: "ai.google.dev/api/generate-content (2026-11)",
  },
  {
    vendor: "deepgram",
    id: "no-forms",
    when: ({ path, isForm }) => path.endsWith("/listen") && isForm,
    status: 400,
    source: "developers.deepgram.com/reference; recalled",
  },
  {
    vendor: "deepgram",
    id: "token",
    when: ({ headers }) => headers.get("authorization")?.startsWith("Token ") !== true,
    status: 401,
    source: "developers.deepgram.com/reference; recalled",
  },
  {
    vendor: "elevenlabs",
    id: "key",
    when: ({ headers }) => headers.get("xi-api-key") === null,
    status: 401,
    source: "npm @elevenlabs/elevenlabs-js 2.73 (2026-11-28)",
  },
  {
    vendor: "elevenlabs",
    id: "model",
    when: ({ fields }) => fields["model_id"] === undefined,
    status: 422,
    source: "npm @elevenlabs/elevenlabs-js 2.73 (2026-11-28)",
  },
  {
    vendor: "elevenlabs",
    id: "output-format",
    when: ({ path, query }) =>
      path.includes("/text-to-speech/") &&
      !/^(?:mp3|pcm|opus|ulaw)_/.test(query.get("output_format") ?? "mp3_"),
    status: 422,
    source: "npm @elevenlabs/elevenlabs-js 2.73 (2026-11-28)",
  },
];

/** Returns the rules by which a vendor refuses a request. */
export const mediaRefusals = (vendor: string, request: MediaRequest): MediaRule[] =>
  mediaRules.filter((rule) => rule.vendor === vendor && rule.when(request));
