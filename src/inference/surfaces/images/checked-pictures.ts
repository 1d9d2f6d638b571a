import { badField } from "../../../platform/kernel/errors.ts";
import type { ImageRequest, Picture } from "./image-request.ts";
import { checkPicture, type PictureHead } from "./picture-file.ts";

/** The bytes below which a mask has to be (npm openai 7.59, `ImageEditParams.mask`). */
const overlayBytes = 4 * 1024 * 1024;

/** A picture, and what its bytes say; pictures that stand elsewhere are not read. */
interface Checked {
  picture: Picture;
  head: PictureHead | undefined;
}

/**
 * Checks the pictures of a request, and gives those without a known type that of their bytes. A mask
 * and markup have to be PNG files that cover the first picture. Throws `GatewayError` that names the
 * field.
 */
export async function withCheckedPictures(request: ImageRequest): Promise<ImageRequest> {
  const pictures = await Promise.all(request.pictures.map((each) => checked(each, "image")));
  const overlay = async (name: "mask" | "markup"): Promise<Picture | undefined> => {
    const sent = request[name];
    if (sent === undefined) return undefined;
    const { picture, head } = await checked(sent, name);
    checkOverlay(name, { picture, head, below: pictures[0]?.head });
    return picture;
  };
  return {
    ...request,
    pictures: pictures.map(({ picture }) => picture),
    mask: await overlay("mask"),
    markup: await overlay("markup"),
  };
}

async function checked(picture: Picture, param: string): Promise<Checked> {
  if ("url" in picture) return { picture, head: undefined };
  const { file } = picture;
  const head = await checkPicture(file.content, param);
  const isKnown = /^image\//.test(file.type ?? "");
  return { picture: isKnown ? picture : { file: { ...file, type: head.type } }, head };
}

function checkOverlay(
  param: "mask" | "markup",
  { picture, head, below }: Checked & { below: PictureHead | undefined },
): void {
  const refuse = (message: string): never => {
    throw badField(param, message);
  };
  if (head === undefined || "url" in picture) return;
  if (head.type !== "image/png") refuse("must be a PNG file.");
  if (picture.file.content.size >= overlayBytes) refuse("must be smaller than 4 MB.");
  const [own, first] = [sidesOf(head), below && sidesOf(below)];
  if (own === undefined || first === undefined) return;
  // A photograph may be stored on its side.
  const isTurned = below?.type === "image/jpeg" && own.join("x") === [...first].reverse().join("x");
  if (own.join("x") !== first.join("x") && !isTurned)
    refuse(`has ${own.join(" x ")} pixels; it must have ${first.join(" x ")}, as the first image.`);
}

const sidesOf = ({ width, height }: PictureHead): readonly [number, number] | undefined =>
  width === undefined || height === undefined ? undefined : [width, height];
