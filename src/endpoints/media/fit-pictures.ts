import { surfaceBaseUrl, type Provider } from "../../inference/catalog/model.ts";
import type { MadePicture } from "../../inference/surfaces/images/image-dialect.ts";
import type { ImagesAnswer } from "../../inference/surfaces/images/images-answer.ts";
import { typeOfBase64 } from "../../inference/surfaces/images/picture-file.ts";
import { guardedFetch } from "../../platform/notify/public-address.ts";
import type { Dependencies } from "../dependencies.ts";

/** The largest picture that is fetched from a provider's address, in bytes. */
const pictureBytesMax = 64 * 1024 * 1024;
const fetchMs = 60_000;

type Services = Pick<Dependencies, "hostedFiles" | "publicUrl">;

/**
 * Gives the pictures of an answer the form that its client asked for: base64 is hosted here for an
 * hour where addresses were asked for, and what a provider hosts is fetched, since its address is
 * not ours. A picture that cannot be fetched keeps the address of its provider. Returns the pictures
 * before they were hosted.
 */
export async function fitPictures(
  answer: ImagesAnswer,
  { services, provider }: { services: Services; provider: Provider },
): Promise<readonly MadePicture[]> {
  const { request } = answer;
  // Events have base64 alone (npm openai 7.59, `ImageGenCompletedEvent`).
  const answersIn = request.stream ? "b64_json" : request.answersIn;
  const made = answer.pictures;
  const own = await Promise.all(
    made.map((picture) => (picture.base64 === undefined ? fetched(picture, provider) : picture)),
  );
  answer.pictures = await Promise.all(
    own.map((picture, index): MadePicture | Promise<MadePicture> => {
      const isLinked = made[index]?.base64 === undefined;
      if (picture.base64 === undefined || answersIn === "b64_json") return picture;
      return isLinked || answersIn === "url" ? hosted(picture, services) : picture;
    }),
  );
  return own;
}

async function hosted(picture: MadePicture, services: Services): Promise<MadePicture> {
  const { base64 = "", type = typeOfBase64(base64), ...rest } = picture;
  const bytes = Uint8Array.from(Buffer.from(base64, "base64"));
  const token = await services.hostedFiles.store({ type, bytes });
  return { ...rest, type, url: `${services.publicUrl()}/api/v1/images/content/${token}` };
}

/** Fetches a picture from its provider's address; the picture as it was where that fails. */
async function fetched(picture: MadePicture, provider: Provider): Promise<MadePicture> {
  const { url } = picture;
  if (url === undefined) return picture;
  const answer = await answerOf(url, provider).catch(() => undefined);
  if (answer === undefined) return picture;
  const { url: _, ...rest } = picture;
  return { ...rest, base64: answer.bytes.toString("base64"), type: answer.type };
}

async function answerOf(url: string, provider: Provider) {
  const signal = AbortSignal.timeout(fetchMs);
  // The operator's own address of a provider may be in a private network.
  const response = isAtProvider(url, provider)
    ? await fetch(url, { redirect: "manual", signal })
    : await guardedFetch(url, { signal }, { allowed: [] });
  const declared = Number(response.headers.get("content-length") ?? 0);
  if (!response.ok || response.body === null || declared > pictureBytesMax) {
    await response.body?.cancel();
    return undefined;
  }
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body) {
    size += piece.byteLength;
    if (size > pictureBytesMax) return undefined;
    pieces.push(piece);
  }
  const bytes = Buffer.concat(pieces);
  const type = response.headers.get("content-type")?.split(";")[0] ?? "image/png";
  return type.startsWith("image/") ? { bytes, type } : { bytes, type: "image/png" };
}

const isAtProvider = (url: string, provider: Provider): boolean => {
  const base = surfaceBaseUrl(provider, "images");
  return base !== undefined && URL.canParse(url) && new URL(base).origin === new URL(url).origin;
};
