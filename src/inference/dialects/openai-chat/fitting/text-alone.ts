import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import type { Loss } from "../../../canonical/request.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";

/**
 * Returns the messages with a note in place of every picture, file and recording, for an upstream
 * that refuses them wherever they are in the history; undefined where there are none. Some models
 * there see the pictures of users.
 */
export function textAlone(
  messages: readonly JsonValue[],
  { seesPictures }: { seesPictures: boolean },
): { messages: JsonValue[]; losses: Loss[] } | undefined {
  const losses: Loss[] = [];
  const plain = messages.map((message, index) => {
    const fields = asObject(message);
    const parts = asArray(fields?.content);
    const keepsPictures = seesPictures && fields?.role === "user";
    const isLeftOut = (part: JsonValue): boolean =>
      isAttachment(part) && !(keepsPictures && asObject(part)?.type === "image_url");
    if (parts === undefined || !parts.some(isLeftOut)) return message;
    const content = parts.map((part, place): JsonValue => {
      if (!isLeftOut(part)) return part;
      const field = `messages[${index}].content[${place}]`;
      losses.push({ field, reason: "the provider reads text alone" });
      return note(part);
    });
    return { ...fields, content };
  });
  return losses.length === 0 ? undefined : { messages: plain, losses };
}

const attachments: ReadonlyMap<unknown, string> = new Map([
  ["image_url", "picture"],
  ["file", "file"],
  ["input_audio", "recording"],
  ["video_url", "video"],
]);

const isAttachment = (part: JsonValue): boolean => attachments.has(asObject(part)?.type);

const note = (part: JsonValue): JsonObject => ({
  type: "text",
  text: `[${attachments.get(asObject(part)?.type)} left out: this model reads text alone]`,
});
