/** Models scale larger pictures down themselves: A4 at 200 dots an inch has 2,339 rows. */
const sideMax = 2_400;

/** JPEG at this quality shows no marks around letters. */
const quality = 90;

/** A page's PNG as a model is to see it: not larger than is of use, and as a JPEG. */
export async function pageJpeg(png: Uint8Array): Promise<Uint8Array> {
  const picture = new Bun.Image(png);
  const { width, height } = await picture.metadata();
  const scale = Math.min(1, sideMax / Math.max(width, height));
  if (scale < 1)
    picture.resize(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  return picture.jpeg({ quality }).bytes();
}
