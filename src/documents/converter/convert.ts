import { joinPages, markdownPages } from "../layout/markdown-of.ts";
import { scaled, type Fragment } from "../layout/regions-of.ts";
import {
  RefusedFileError,
  loaded,
  type ConversionReport,
  type ConversionTask,
  type ConversionLimits,
  type FileFormat,
} from "./converter-messages.ts";
import { normalPictures } from "./normal-picture.ts";
import type { createIsomorphicCanvasFactory, getDocumentProxy } from "unpdf";
import type { Recognizer } from "./recognizer.ts";

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type CanvasFactory = Awaited<ReturnType<typeof createIsomorphicCanvasFactory>>;

/** A page with fewer visible characters counts as a picture with a stamp or a page number on it. */
const textCharactersMin = 12;

/** The most pieces of text of a page: more than any real page has. */
const fragmentsMax = 50_000;

/**
 * Pixels per point. A point is a 72nd of an inch, and pages are drawn at 200 dpi, up to a largest
 * size.
 */
const renderScale = 200 / 72;
const renderPixelsMax = 10_000_000;

/** The dependencies of reading a PDF. */
interface PdfReading {
  limits: ConversionLimits;
  /** Reads a page that has no text of its own. */
  readPicture: ReadPicture;
  /** Called after each page. */
  onPage(): void;
}

/** Reads each page: its own text, or a picture of those that have none. Throws `RefusedFileError`. */
async function readPdf(
  bytes: Uint8Array,
  { limits, readPicture, onPage }: PdfReading,
): Promise<ReadPage[]> {
  const pdf = await openPdf(bytes, { limits });
  const { numPages } = pdf;
  if (numPages < 1) throw new RefusedFileError("The document has no pages.");
  if (numPages > limits.pagesMax)
    throw new RefusedFileError(
      `The document has ${numPages} pages; at most ${limits.pagesMax} can be read.`,
    );
  const pages: ReadPage[] = [];
  const scanned: number[] = [];
  for (let number = 1; number <= numPages; number += 1) {
    const fragments = await pageText(pdf, number);
    if (!hasText(fragments)) scanned.push(number);
    pages.push({ fragments });
    onPage();
  }
  await pdf.loadingTask.destroy();
  if (scanned.length > limits.scannedPagesMax) {
    const { scannedPagesMax } = limits;
    throw new RefusedFileError(
      `The document has ${scanned.length} pages without text of their own; at most ${scannedPagesMax} can be read.`,
    );
  }
  if (scanned.length > 0) {
    const drawing = await openForDrawing(bytes, limits);
    for (const number of scanned) {
      const { png, scale } = await drawPage(drawing, number);
      const found = await readPicture(png);
      if ("jpeg" in found) pages[number - 1] = found;
      else if (found.fragments.length > 0)
        pages[number - 1] = { fragments: found.fragments.map((each) => scaled(each, 1 / scale)) };
      onPage();
    }
  }
  return pages;
}

async function openPdf(
  bytes: Uint8Array,
  { limits, CanvasFactory }: { limits: ConversionLimits; CanvasFactory?: CanvasFactory },
): Promise<Pdf> {
  const { getDocumentProxy: open } = await loaded(import("unpdf"));
  const options = {
    isEvalSupported: false,
    maxImageSize: limits.pixelsMax,
    verbosity: 0,
    ...(CanvasFactory !== undefined && { CanvasFactory }),
  };
  try {
    // PDF.js takes ownership of the bytes and rejects a `Buffer`, so it gets a copy in a plain
    // array.
    return await open(new Uint8Array(bytes), options);
  } catch (error) {
    const encrypted = error instanceof Error && error.name === "PasswordException";
    throw new RefusedFileError(
      encrypted ? "The document is protected by a password." : "The document is damaged.",
      { cause: error },
    );
  }
}

/**
 * Opens a document with the parts that draw its pages, which take longer to load than those that
 * read text.
 */
async function openForDrawing(bytes: Uint8Array, limits: ConversionLimits): Promise<Pdf> {
  const { createIsomorphicCanvasFactory: create } = await loaded(import("unpdf"));
  return openPdf(bytes, {
    limits,
    CanvasFactory: await loaded(create(() => import("@napi-rs/canvas"))),
  });
}

/** Converts an error on a page to the refusal of a damaged document. */
async function orDamaged<Result>(work: Promise<Result>, number: number): Promise<Result> {
  return work.catch((error: unknown) => {
    throw new RefusedFileError(`Page ${number} of the document is damaged.`, { cause: error });
  });
}

async function pageText(pdf: Pdf, number: number): Promise<Fragment[]> {
  const page = await orDamaged(pdf.getPage(number), number);
  const { items } = await orDamaged(page.getTextContent(), number);
  if (items.length > fragmentsMax)
    throw new RefusedFileError(
      `Page ${number} of the document has more text than a page can hold.`,
    );
  const { transform } = page.getViewport({ scale: 1 });
  page.cleanup();
  return items.flatMap((item) =>
    "str" in item && item.str.trim() !== "" ? [fragmentOf(item, transform as number[])] : [],
  );
}

/** Returns a piece of text from PDF.js, in the page's own upright coordinates. */
function fragmentOf(
  { str, transform, width }: { str: string; transform: unknown[]; width: number },
  view: number[],
): Fragment {
  const [a = 1, b = 0, c = 0, d = 1, e = 0, f = 0] = transform as number[];
  const [viewA = 1, viewB = 0, viewC = 0, viewD = 1, viewE = 0, viewF = 0] = view;
  const size = Math.hypot(c, d) || Math.hypot(a, b) || 1;
  const left = viewA * e + viewC * f + viewE;
  const baseline = viewB * e + viewD * f + viewF;
  return {
    text: str,
    left,
    right: left + width,
    top: baseline - 0.8 * size,
    bottom: baseline + 0.2 * size,
    size,
  };
}

/**
 * Returns whether a page has readable text. Fonts without a character mapping yield meaningless
 * signs.
 */
function hasText(fragments: readonly Fragment[]): boolean {
  const text = fragments
    .map((fragment) => fragment.text)
    .join("")
    .replace(/\s/g, "");
  const unreadable = text.match(/[\ufffd\ue000-\uf8ff\0-\x1f]/g)?.length ?? 0;
  return text.length >= textCharactersMin && unreadable < text.length / 4;
}

/** Draws a page, and returns the picture with its pixels per point. */
async function drawPage(pdf: Pdf, number: number): Promise<{ png: Uint8Array; scale: number }> {
  const { renderPageAsImage } = await loaded(import("unpdf"));
  const page = await orDamaged(pdf.getPage(number), number);
  const { width, height } = page.getViewport({ scale: 1 });
  if (!(width >= 1 && height >= 1))
    throw new RefusedFileError(`Page ${number} of the document has no size.`);
  const scale = Math.min(renderScale, Math.sqrt(renderPixelsMax / (width * height)));
  const drawn = renderPageAsImage(pdf, number, {
    canvasImport: () => import("@napi-rs/canvas"),
    scale,
  });
  return { png: new Uint8Array(await orDamaged(drawn, number)), scale };
}

/** Converts an untrusted file. Throws errors that the file did not cause. */
export async function convert(
  task: ConversionTask,
  { recognizer, onPage }: { recognizer: Pick<Recognizer, "read">; onPage(): void },
): Promise<ConversionReport> {
  const readPicture: ReadPicture = async (png) =>
    task.leavesPictures === true
      ? { jpeg: await pageJpeg(png) }
      : { fragments: await recognizer.read(png) };
  try {
    if (task.format === "office") return await officeReport(task);
    return reportOf(await pagesOf({ ...task, format: task.format }, { readPicture, onPage }), task);
  } catch (error) {
    if (error instanceof RefusedFileError) return { kind: "refused", message: error.message };
    throw error;
  }
}

async function officeReport({
  bytes,
  limits: { charactersMax },
}: ConversionTask): Promise<ConversionReport> {
  const { officeText } = await loaded(import("../office/office-text.ts"));
  const { markdown, pages } = officeText(bytes);
  if (markdown.length > charactersMax)
    throw new RefusedFileError(`The file has more than ${charactersMax} characters of text.`);
  return { kind: "converted", markdown, pages };
}

function reportOf(
  pages: readonly ReadPage[],
  { limits: { charactersMax } }: ConversionTask,
): ConversionReport {
  const texts = markdownPages(pages.map((page) => ("jpeg" in page ? [] : page.fragments)));
  const markdown = joinPages(texts);
  if (markdown.length > charactersMax)
    throw new RefusedFileError(`The file has more than ${charactersMax} characters of text.`);
  if (!pages.some((page) => "jpeg" in page))
    return { kind: "converted", markdown, pages: pages.length };
  return {
    kind: "prepared",
    pages: pages.map((page, index) => ("jpeg" in page ? page : { markdown: texts[index] ?? "" })),
  };
}

async function pagesOf(
  { format, bytes, limits }: ConversionTask & { format: FileFormat },
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
type ReadPage = { fragments: Fragment[] } | { jpeg: Uint8Array };

/** Processes a page that is a PNG. Throws `RefusedFileError`. */
type ReadPicture = (png: Uint8Array) => Promise<ReadPage>;

/**
 * The longest side, in pixels, of a picture for a model. Models scale larger ones down themselves;
 * A4 at 200 dpi has 2,339 rows.
 */
const sideMax = 2_400;

/** A JPEG quality without visible artefacts around letters. */
const quality = 90;

/** Converts a page's PNG to a JPEG for a model, no larger than useful. */
async function pageJpeg(png: Uint8Array): Promise<Uint8Array> {
  const picture = new Bun.Image(png);
  const { width, height } = await picture.metadata();
  const scale = Math.min(1, sideMax / Math.max(width, height));
  if (scale < 1)
    picture.resize(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
  return picture.jpeg({ quality }).bytes();
}
