import { joinPages, markdownPages } from "../layout/markdown-of.ts";
import type { ConversionReport, ConversionTask } from "./converter-messages.ts";
import { normalPictures } from "./normal-picture.ts";
import { pageJpeg } from "./page-jpeg.ts";
import type { ReadPage, ReadPicture } from "./read-page.ts";
import { readPdf } from "./read-pdf.ts";
import type { Recognizer } from "./recognizer.ts";
import { RefusedFile } from "./conversion-error.ts";

/** Converts a file, whose bytes nobody vouches for. Throws what went wrong where it is not the file. */
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
