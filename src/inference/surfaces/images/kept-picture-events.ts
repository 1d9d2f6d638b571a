import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import { keptCharactersMax, type KeptText } from "../../../platform/kernel/json/text-keeper.ts";
import type { AnswerKeeper } from "../../pipeline/inference-call.ts";
import { base64Of, type KeptFile, MediaRoom } from "../media/media-room.ts";
import type { Fields } from "../read-fields.ts";
import type { MadePicture } from "./image-dialect.ts";
import type { ImageRequest, Picture } from "./image-request.ts";

/**
 * Reads a request for pictures as it is kept: the JSON that could be sent again, with its pictures as
 * data URLs as far as there is room. `members` are those of its body, without pictures.
 */
export async function readKeptPictures(
  { pictures, mask, markup }: ImageRequest,
  { members, bytesMax }: { members: Fields; bytesMax: number },
): Promise<KeptText> {
  const room = new MediaRoom(bytesMax);
  const read = async (picture: Picture): Promise<Fields> =>
    "url" in picture ? { image_url: picture.url } : readPicture(picture.file, room);
  const images: Fields[] = [];
  for (const picture of pictures) images.push(await read(picture));
  return room.textOf(
    members,
    withoutUndefined<Fields>({
      images: images.length === 0 ? undefined : images,
      mask: mask && (await read(mask)),
      markup: markup && (await read(markup)),
    }),
  );
}

/** Reads a picture of a request as `images` of JSON name it; without room, its size alone. */
async function readPicture(
  { filename, type, content }: KeptFile,
  room: MediaRoom,
): Promise<Fields> {
  const facts = { filename, bytes: content.size };
  if (!room.takeWhole(content.size)) return { ...facts, type, kept_bytes: 0 };
  const known = /^image\/[\w.+-]+$/.test(type ?? "") ? type : "image/png";
  const base64 = await base64Of(content, content.size);
  return { image_url: `data:${known};base64,${base64}`, ...facts };
}

/** Returns the pictures of an answer in OpenAI's form, as far as there is room for their bytes. */
export const keptData = (pictures: readonly MadePicture[], room: MediaRoom): Fields[] =>
  pictures.map(({ base64, url, type, revisedPrompt: revised_prompt }) => {
    if (base64 === undefined) return withoutUndefined<Fields>({ url, revised_prompt });
    const bytes = Buffer.byteLength(base64, "base64");
    const shown = room.takeWhole(bytes) ? { b64_json: base64 } : { type, bytes, kept_bytes: 0 };
    return withoutUndefined<Fields>({ ...shown, revised_prompt });
  });

/** Keeps the finished pictures of a stream, without the partial ones that precede them. */
export class KeptPictureEvents implements AnswerKeeper {
  readonly isEvents = true;
  private text = "";
  private readonly room: MediaRoom;
  private readonly charactersMax: number;

  constructor(bytesMax: number) {
    this.room = new MediaRoom(bytesMax);
    this.charactersMax = Math.ceil((bytesMax * 4) / 3) + keptCharactersMax;
  }

  add(frames: string | Uint8Array): void {
    if (typeof frames === "string") for (const event of frames.split("\n\n")) this.take(event);
  }

  get kept(): KeptText {
    return { text: this.text, isCut: this.room.isCut };
  }

  private take(event: string): void {
    const [, type = ""] = /^event: (\S+)/.exec(event) ?? [];
    if (type === "" || type.endsWith("partial_image")) return;
    const bytes = Math.floor((event.length * 3) / 4);
    const shown = this.room.takeWhole(bytes)
      ? event
      : `event: ${type}\ndata: ${JSON.stringify({ type, bytes, kept_bytes: 0 })}`;
    if (this.text.length + shown.length < this.charactersMax) this.text += `${shown}\n\n`;
  }
}
