import { send, sendingAsWritten } from "../../../lib/api.ts";
import { withPlaygroundKey } from "../../../lib/playground-key.ts";
import { type Attachment, type MediaKind, type Settings, dataOf, soundFormatOf } from "../draft.ts";
import { type Answer, type AskOptions, eventsOf, noAnswer, refusedAnswer } from "../stream.ts";

/** What a column is asked, for a model that makes pictures or sound or writes down what is said. */
interface MediaRequest {
  kind: MediaKind;
  path: string;
  body: Readonly<Record<string, unknown>>;
}

const given = (name: string, value: string): Record<string, string> =>
  value === "" ? {} : { [name]: value };

const pictureRequest = (
  column: Settings,
  prompt: string,
  attachments: readonly Attachment[],
): MediaRequest => {
  const pictures = attachments.filter(({ type }) => type.startsWith("image/"));
  return {
    kind: "picture",
    path: pictures.length === 0 ? "/images/generations" : "/images/edits",
    body: {
      model: column.model,
      prompt,
      ...(column.count === "" ? {} : { n: Number(column.count) }),
      ...given("size", column.size),
      ...given("quality", column.quality),
      ...(pictures.length === 0 ? {} : { images: pictures.map(({ url }) => ({ image_url: url })) }),
    },
  };
};

const speechRequest = (column: Settings, prompt: string): MediaRequest => ({
  kind: "speech",
  path: "/audio/speech",
  body: {
    model: column.model,
    input: prompt,
    voice: column.voice || "alloy",
    ...(column.system === "" ? {} : { instructions: column.system }),
    response_format: column.soundFormat,
    stream_format: "sse",
  },
});

/** Throws where nothing was recorded or attached. */
const transcriptRequest = (
  column: Settings,
  prompt: string,
  attachments: readonly Attachment[],
): MediaRequest => {
  const sound = attachments.find(({ type }) => type.startsWith("audio/"));
  if (sound === undefined)
    throw new Error(`${column.model} writes down what is said: record or attach a sound first.`);
  return {
    kind: "transcript",
    path: "/audio/transcriptions",
    body: {
      model: column.model,
      input_audio: { data: dataOf(sound.url), format: soundFormatOf(sound) },
      ...given("language", column.language),
      ...given("prompt", prompt),
    },
  };
};

/** The request of a column. Throws where the message lacks what the model needs. */
export function mediaRequestOf(
  kind: MediaKind,
  column: Settings,
  { prompt, attachments }: { prompt: string; attachments: readonly Attachment[] },
): MediaRequest {
  if (kind === "picture") return pictureRequest(column, prompt, attachments);
  if (kind === "speech") return speechRequest(column, prompt);
  return transcriptRequest(column, prompt, attachments);
}

interface Usage {
  output_tokens?: number;
  cost?: number;
}

const figuresOf = ({ output_tokens: tokens, cost }: Usage = {}): Partial<Answer> => ({
  ...(tokens === undefined || tokens === 0 ? {} : { tokens }),
  ...(cost === undefined ? {} : { costUsd: cost }),
});

interface Pictures {
  data: readonly { b64_json?: string; revised_prompt?: string }[];
  output_format?: string;
  usage?: Usage;
}

/** The type of a picture, by the beginning of its base64. */
const pictureType = (data: string): string =>
  data.startsWith("/9j/") ? "image/jpeg" : data.startsWith("UklGR") ? "image/webp" : "image/png";

async function readPictures(response: Response): Promise<Partial<Answer>> {
  const { data, usage } = (await response.json()) as Pictures;
  const pictures = data.flatMap(({ b64_json: base64 }) =>
    base64 === undefined ? [] : [`data:${pictureType(base64)};base64,${base64}`],
  );
  return { pictures, text: data[0]?.revised_prompt ?? "", ...figuresOf(usage) };
}

interface SpeechEvent {
  type: string;
  audio?: string;
  usage?: Usage;
  error?: { message?: string };
}

/** The sound of a stream as one data URL: its pieces are decoded, since each is padded by itself. */
async function readSpeech(response: Response, format: string): Promise<Partial<Answer>> {
  if (response.body === null) throw new Error("The service sent no sound.");
  const pieces: string[] = [];
  let usage: Usage | undefined;
  for await (const text of eventsOf(response.body)) {
    const event = JSON.parse(text) as SpeechEvent;
    if (event.error !== undefined) throw new Error(event.error.message ?? "The sound broke off.");
    if (event.audio !== undefined) pieces.push(atob(event.audio));
    if (event.usage !== undefined) ({ usage } = event);
  }
  const type = format === "mp3" ? "audio/mpeg" : `audio/${format}`;
  return { sounds: [`data:${type};base64,${btoa(pieces.join(""))}`], ...figuresOf(usage) };
}

async function readTranscript(response: Response): Promise<Partial<Answer>> {
  const { text, usage } = (await response.json()) as { text: string; usage?: Usage };
  return { text, ...figuresOf(usage) };
}

/** Sends a request for pictures or sound; what goes wrong is part of the answer. */
export async function askMedia(
  { kind, path, body }: MediaRequest,
  { workspaceId, signal, onAnswer }: AskOptions,
): Promise<Answer> {
  const startedMs = performance.now();
  let answer: Answer = { ...noAnswer, state: "waiting" };
  const show = (next: Answer): Answer => {
    onAnswer((answer = { ...next, totalMs: performance.now() - startedMs }));
    return answer;
  };
  onAnswer(answer);
  try {
    const response = await withPlaygroundKey(workspaceId, (key) =>
      send(path, { ...sendingAsWritten(body), signal, key }),
    );
    const providers = response.headers.get("x-service-provider-chain");
    const traceId = response.headers.get("x-request-id");
    const read =
      kind === "picture"
        ? readPictures(response)
        : kind === "speech"
          ? readSpeech(response, String(body["response_format"]))
          : readTranscript(response);
    return show({
      ...{ ...answer, ...(await read), state: "done" },
      ...(providers === null ? {} : { providers }),
      ...(traceId === null ? {} : { generationId: `gen_${traceId}` }),
    });
  } catch (error) {
    return show(signal.aborted ? { ...answer, state: "stopped" } : refusedAnswer(answer, error));
  }
}
