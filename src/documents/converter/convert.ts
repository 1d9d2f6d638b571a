import { joinPages, markdownPages } from "../layout/markdown-of.ts";
import type { Fragment } from "../layout/regions-of.ts";
import { RefusedFile, type ConversionReport, type ConversionTask } from "./converter-messages.ts";
import { normalPictures } from "./normal-picture.ts";
import { readPdf } from "./read-pdf.ts";
import type { Recognizer } from "./recognizer.ts";

/**
 * Converts a file of untrusted bytes. Throws what went wrong where it is not the file.
 */
export async function convert(
  task: ConversionTask,
  { recognizer, onPage }: { recognizer: Pick<Recognizer, "read">; onPage(): void },
): Promise<ConversionReport> {
  const readPicture: ReadPicture = async (png) =>
    task.leavesPictures === true
      ? { jpeg: await pageJpeg(png) }
      : { fragments: await recognizer.read(png) };
  try {
    return reportOf(await pagesOf(task, { readPicture, onPage }), task);
  } catch (error) {
    if (error instanceof RefusedFile) return { kind: "refused", message: error.message };
    throw error;
  }
}

function reportOf(
  pages: readonly ReadPage[],
  { limits: { charactersMax } }: ConversionTask,
): ConversionReport {
  const texts = markdownPages(pages.map((page) => ("jpeg" in page ? [] : page.fragments)));
  const markdown = joinPages(texts);
  if (markdown.length > charactersMax)
    throw new RefusedFile(`The file has more than ${charactersMax} characters of text.`);
  if (!pages.some((page) => "jpeg" in page))
    return { kind: "converted", markdown, pages: pages.length };
  return {
    kind: "prepared",
    pages: pages.map((page, index) => ("jpeg" in page ? page : { markdown: texts[index] ?? "" })),
  };
}

async function pagesOf(
  { format, bytes, limits }: ConversionTask,
  { readPicture, onPage }: { readPicture: ReadPicture; onPage(): void },
): Promise<ReadPage[]> {
  if (format === "pdf") return readPdf(bytes, { limits, readPicture, onPage });
  const pages: ReadPage[] = [];
  for (const picture of await normalPictures(format, bytes, limits)) {
    onPage();
    pages.push(await readPicture(picture));
  }
  return pages;
}

/** A page that was read, or its picture where a provider is to read it. */
export type ReadPage = { fragments: Fragment[] } | { jpeg: Uint8Array };

/** What is done with a page that is a PNG. Throws `RefusedFile`. */
export type ReadPicture = (png: Uint8Array) => Promise<ReadPage>;

/** Models scale larger pictures down themselves: A4 at 200 dots an inch has 2,339 rows. */
const sideMax = 2_400;

/** JPEG at this quality shows no marks around letters. */
const quality = 90;

/** A page's PNG as a model is to see it: not larger than is of use, and as a JPEG. */
async function pageJpeg(png: Uint8Array): Promise<Uint8Array> {
  const picture = new Bun.Image(png);
  const { width, height } = await picture.metadata();
  const scale = Math.min(1, sideMax / Math.max(width, height));
  if (scale < 1)
    picture.resize(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  return picture.jpeg({ quality }).bytes();
}
