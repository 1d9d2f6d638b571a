import { medianOf } from "../layout/markdown-of.ts";
import { scaled, linesOf, regionsOf, type Fragment } from "../layout/regions-of.ts";
import { RefusedFileError, loaded } from "./converter-messages.ts";
import { dirname, join } from "node:path";
import type { Page, RecognizeOptions, Worker } from "tesseract.js";

/** The confidence, in percent, below which Tesseract's words are specks and rules. */
const confidenceMin = 20;

/** Matches bullets, which are among the signs of low confidence. */
const bulletPattern = /^[^\p{L}\p{N}]$/u;

/**
 * Rows lower than this many pixels, as on screens, are read again at twice the size. In a trial,
 * type of 9 to 20 pixels then had no wrong words where it had some before, while larger type has
 * more of them the more it is enlarged.
 */
const smallHeight = 22;
const enlargement = 2;
const enlargedPixelsMax = 16_000_000;

/** Reads pictures with Tesseract, whose engine runs as WebAssembly in a thread of this process. */
export class Recognizer {
  private worker: Promise<Worker> | undefined;

  /**
   * Returns the words of a PNG, after turning it upright. Throws `RefusedFileError` when the engine
   * cannot read it.
   */
  async read(png: Uint8Array): Promise<Fragment[]> {
    const fragments = await this.recognize(png);
    if (medianOf(fragments.map(({ top, bottom }) => bottom - top)) >= smallHeight) return fragments;
    const picture = new Bun.Image(png);
    const { width, height } = await picture.metadata();
    if (width * height * enlargement ** 2 > enlargedPixelsMax) return fragments;
    const enlarged = picture.resize(width * enlargement, height * enlargement, { filter: "cubic" });
    return (await this.recognize(await enlarged.png({ compressionLevel: 1 }).bytes())).map(
      (fragment) => scaled(fragment, 1 / enlargement),
    );
  }

  private async recognize(png: Uint8Array): Promise<Fragment[]> {
    const asBlock = await this.recognizeAs(png, {
      tessedit_pageseg_mode: pageModes.block,
      rotateAuto: true,
    });
    if (!regionsOf(linesOf(asBlock.fragments)).some(({ kind }) => kind === "columns"))
      return asBlock.fragments;
    const asColumns = await this.recognizeAs(png, {
      tessedit_pageseg_mode: pageModes.columns,
      rotateRadians: asBlock.rotateRadians,
    });
    return asColumns.fragments.length >= columnWordsMin * asBlock.fragments.length
      ? asColumns.fragments
      : asBlock.fragments;
  }

  private async recognizeAs(
    png: Uint8Array,
    options: Partial<RecognizeOptions> & { tessedit_pageseg_mode: string; rotateRadians?: number },
  ): Promise<{ fragments: Fragment[]; rotateRadians: number }> {
    const worker = await (this.worker ??= loaded(startWorker()));
    const { data } = await worker
      .recognize(Buffer.from(png), options, { text: false, blocks: true })
      .catch((error: unknown) => {
        throw new RefusedFileError("The picture cannot be read.", { cause: error });
      });
    return { fragments: fragmentsOf(data), rotateRadians: data.rotateRadians ?? 0 };
  }
}

/**
 * Tesseract's page modes: one block, whose rows extend across the page, or columns that it detects.
 * The latter loses cells of tables and, now and then, everything on a skewed page; the former mixes
 * columns whose rows are not aligned. So a page is read as a block first, and again where that
 * shows columns.
 */
const pageModes = { block: "6", columns: "3" } as const;

/**
 * The share of the second reading's words that have to occur in the first for the second to be
 * used.
 */
const columnWordsMin = 0.95;

/**
 * Starts the engine. The language data comes from its package, so that nothing is downloaded and
 * nothing is cached.
 */
async function startWorker(): Promise<Worker> {
  const { createWorker, OEM } = await import("tesseract.js");
  const packagePath = Bun.resolveSync("@tesseract.js-data/eng/package.json", import.meta.dir);
  return createWorker("eng", OEM.LSTM_ONLY, {
    langPath: join(dirname(packagePath), "4.0.0_best_int"),
    cacheMethod: "none",
    gzip: true,
  });
}

function fragmentsOf({ blocks }: Page): Fragment[] {
  const lines = (blocks ?? [])
    .flatMap(({ paragraphs }) => paragraphs)
    .flatMap((paragraph) => paragraph.lines);
  return lines.flatMap(({ words, rowAttributes, bbox }) => {
    const size = rowAttributes.rowHeight || bbox.y1 - bbox.y0;
    // The row's middle is used for each word, since low and tall letters would move it up and down.
    const [top, bottom] = [bbox.y0, bbox.y1];
    return words
      .filter(
        ({ confidence, text }, index) =>
          confidence >= confidenceMin || (index === 0 && bulletPattern.test(text)),
      )
      .map(({ text, bbox: { x0, x1 } }) => ({ text, left: x0, right: x1, top, bottom, size }));
  });
}
