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
    return [`data:audio/${format === "mp3" ? "mpeg" : format};base64,${data}`];
  if (type === "image" && isObject(source) && typeof source["data"] === "string")
    return [`data:${String(source["media_type"])};base64,${source["data"]}`];
  return Object.values(value).flatMap(urlsIn);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The pictures and sounds of an answer as it was sent: JSON, or the events of a stream. */
const urlsOfAnswer = (raw: string): string[] =>
  raw.startsWith("{")
    ? urlsIn(parsed(raw))
    : raw
        .split("\n")
        .flatMap((line) => (line.startsWith("data:") ? urlsIn(parsed(line.slice(5))) : []));

const unique = (urls: readonly string[]): string[] => [...new Set(urls)].slice(0, shownMax);

/** The pictures and sounds of a request whose content is kept; nothing where it has none. */
export function KeptMedia({ content, side }: { content: Content; side: "asked" | "answered" }) {
  const urls = unique(side === "asked" ? urlsIn(content.input) : urlsOfAnswer(content.output.raw));
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
