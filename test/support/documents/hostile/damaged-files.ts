import { seededRandom } from "../../../end-to-end/process/support/seeded-random.ts";
import { drawPage } from "../draw-page.ts";
import { encodePicture, pictureFormats } from "../encode-picture.ts";
import { writePdf } from "../write-pdf.ts";
import type { HostileFile } from "./hostile-file.ts";

/**
 * Returns a file that is cut somewhere, has some of its bytes changed, or continues as another one.
 */
function spoiled(
  bytes: Uint8Array,
  { random, other }: { random: () => number; other: Uint8Array },
): Uint8Array {
  const at = (length: number): number => Math.floor(random() * length);
  const kind = at(3);
  if (kind === 0) return bytes.slice(0, 12 + at(bytes.length - 12));
  if (kind === 1) return Buffer.concat([bytes.subarray(0, 8 + at(64)), other]);
  const changed = Uint8Array.from(bytes);
  for (let count = 0; count < 8; count += 1) changed[8 + at(changed.length - 8)] = at(256);
  return changed;
}

/**
 * Returns this number of files of every kind, damaged at random but the same ones each time; some
 * remain readable.
 */
export async function spoiledFiles(count: number): Promise<HostileFile[]> {
  const canvas = drawPage({ width: 160, height: 50, texts: [{ text: "text", x: 20, y: 35 }] });
  const files = await Promise.all(
    pictureFormats.map(async (format): Promise<Uint8Array> => encodePicture[format](canvas)),
  );
  files.push(writePdf([{ texts: [{ text: "The text of a page", x: 60, y: 700 }] }]));
  const random = seededRandom(7);
  return Array.from({ length: count }, (_, index) => ({
    name: `spoiled file ${index}`,
    bytes: spoiled(files[index % files.length] as Uint8Array, {
      random,
      other: files[(index + 3) % files.length] as Uint8Array,
    }),
  }));
}
