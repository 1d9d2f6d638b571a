import { drawPage } from "../draw-page.ts";
import { encodePicture, pictureFormats } from "../encode-picture.ts";
import { writePdf } from "../write-pdf.ts";
import type { HostileFile } from "./hostile-file.ts";

/**
 * Where files are cut, as shares of their length: in the header, in the first rows, and shortly
 * before the end.
 */
const shares = [0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98] as const;

/** Returns files of every format that were whole once, each cut at many places. */
export async function cutFiles(): Promise<HostileFile[]> {
  const texts = [
    { text: "The invoice was paid", x: 20, y: 40 },
    { text: "in November of this year", x: 20, y: 100 },
  ];
  const canvas = drawPage({ width: 400, height: 120, texts });
  const whole: [string, Uint8Array][] = await Promise.all(
    pictureFormats.map(
      async (format): Promise<[string, Uint8Array]> => [
        format,
        await encodePicture[format](canvas),
      ],
    ),
  );
  const pages = Array.from({ length: 3 }, (_, page) => ({
    texts: [{ text: `The text of page ${page}`, x: 60, y: 700 }],
  }));
  whole.push(["pdf", writePdf(pages)]);
  return whole.flatMap(([format, bytes]) =>
    shares.map(
      (share): HostileFile => ({
        name: `a ${format} that is cut after ${share * 100} %`,
        bytes: bytes.slice(0, Math.max(12, Math.floor(bytes.length * share))),
      }),
    ),
  );
}
