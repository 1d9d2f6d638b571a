import { bytes } from "../../lib/format.ts";
import type { Content } from "./api.ts";
import own from "./activity.module.css";

/** What a drawer shows of a request at most. */
const shownMax = 16;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** The type of a picture, by the beginning of its base64. */
const pictureType = (data: string): string =>
  data.startsWith("/9j/") ? "jpeg" : data.startsWith("UklGR") ? "webp" : "png";

/** Returns the pictures and sounds within a value of JSON, as data URLs. */
function urlsIn(value: unknown): string[] {
  if (typeof value === "string") return /^data:(?:image|audio)\//.test(value) ? [value] : [];
  if (Array.isArray(value)) return value.flatMap(urlsIn);
  if (!isObject(value)) return [];
  const { b64_json: picture, data, format, type, source } = value;
  if (typeof picture === "string") return [`data:image/${pictureType(picture)};base64,${picture}`];
  // OpenAI's sound within a message, and Anthropic's pictures.
  if (typeof data === "string" && typeof format === "string")
    return [`data:audio/${soundTypes[format] ?? format};base64,${data}`];
  if (type === "image" && isObject(source) && typeof source["data"] === "string")
    return [`data:${String(source["media_type"])};base64,${source["data"]}`];
  return Object.values(value).flatMap(urlsIn);
}

/** The formats of sound whose type has another name. */
const soundTypes: Readonly<Record<string, string>> = { mp3: "mpeg", opus: "ogg" };

/** A picture or sound of which less is kept than it has. */
interface CutFile {
  filename?: string;
  bytes: number;
  kept_bytes: number;
}

const isCutFile = (value: object): value is CutFile =>
  "bytes" in value && "kept_bytes" in value && typeof value.kept_bytes === "number";

/** Returns the files within a value of JSON that exceed what is kept. */
function cutFilesIn(value: unknown): CutFile[] {
  if (Array.isArray(value)) return value.flatMap(cutFilesIn);
  if (!isObject(value)) return [];
  return [...(isCutFile(value) ? [value] : []), ...Object.values(value).flatMap(cutFilesIn)];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The values of an answer as it was sent: JSON, or the events of a stream. */
const valuesOf = (raw: string): unknown[] =>
  raw.startsWith("{")
    ? [parsed(raw)]
    : raw.split("\n").flatMap((line) => (line.startsWith("data:") ? [parsed(line.slice(5))] : []));

type Side = "asked" | "answered";

const sideOf = ({ input, output }: Content, side: Side): unknown[] =>
  side === "asked" ? [input] : valuesOf(output.raw);

const unique = (urls: readonly string[]): string[] => [...new Set(urls)].slice(0, shownMax);

/** Says what of a request or an answer is not kept: files that are too large, or the end of a text. */
export function CutNote({ content, side }: { content: Content; side: Side }) {
  const files = sideOf(content, side).flatMap(cutFilesIn);
  if (files.length === 0) return <p>Only its beginning is kept.</p>;
  return files.map(({ filename = "A file", bytes: size, kept_bytes: kept }, index) => (
    <p key={`${filename} ${index}`}>
      {filename} of {bytes(size)} is too large to be kept
      {kept > 0 ? `: the first ${bytes(kept)} are` : ""}.
    </p>
  ));
}

/** The pictures and sounds of a request whose content is kept; nothing where it has none. */
export function KeptMedia({ content, side }: { content: Content; side: Side }) {
  const urls = unique(sideOf(content, side).flatMap(urlsIn));
  if (urls.length === 0) return null;
  return (
    <div className={own["media"]}>
      {urls.map((url, index) =>
        url.startsWith("data:image/") ? (
          <a key={url} href={url} download={`picture-${index + 1}`}>
            <img src={url} alt={`${side === "asked" ? "Sent" : "Made"}, number ${index + 1}`} />
          </a>
        ) : (
          // biome-ignore lint/a11y/useMediaCaption: the texts of the request are beside it.
          <audio
            key={url}
            src={url}
            controls
            aria-label={`Sound ${index + 1}, ${side === "asked" ? "sent" : "made"}`}
          />
        ),
      )}
    </div>
  );
}
