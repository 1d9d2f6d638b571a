/**
 * A text on a page of a PDF, and the position of its baseline from the lower left corner, in
 * points.
 */
interface PdfText {
  text: string;
  x: number;
  y: number;
  /** Size in points; 11 when absent. */
  size?: number;
}

/** An A4 page: with text of its own, or with a JPEG that fills it, as scanners write it. */
export type PdfPage =
  | { texts: readonly PdfText[] }
  | { jpeg: Uint8Array; width: number; height: number };

const [pageWidth, pageHeight] = [595, 842];

type Part = string | Uint8Array;

const escaped = (text: string): string => text.replace(/[\\()]/g, "\\$&");

const stream = (dictionary: string, content: Uint8Array): Part[] => [
  `<< ${dictionary} /Length ${content.byteLength} >>\nstream\n`,
  content,
  "\nendstream",
];

function contentOf(page: PdfPage): string {
  if ("jpeg" in page) return `q ${pageWidth} 0 0 ${pageHeight} 0 0 cm /Scan Do Q`;
  return page.texts
    .map(
      ({ text, x, y, size = 11 }) =>
        `BT /Body ${size} Tf 1 0 0 1 ${x} ${y} Tm (${escaped(text)}) Tj ET`,
    )
    .join("\n");
}

/** Returns the objects of a page, numbered from `first`: two, and a third for its picture. */
function pageObjects(page: PdfPage, first: number): Part[][] {
  const picture = "jpeg" in page ? `/XObject << /Scan ${first + 2} 0 R >>` : "";
  const objects: Part[][] = [
    [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${pageWidth} ${pageHeight}] /Contents ${first + 1} 0 R` +
        ` /Resources << /Font << /Body 3 0 R >> ${picture} >> >>`,
    ],
    stream("", Buffer.from(contentOf(page), "latin1")),
  ];
  if (!("jpeg" in page)) return objects;
  const { width, height, jpeg } = page;
  const facts =
    `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceRGB /BitsPerComponent 8` +
    " /Filter /DCTDecode";
  return [...objects, stream(facts, jpeg)];
}

/** Writes a PDF 1.4 with a cross-reference table (ISO 32000-1, 7.5). */
export function writePdf(pages: readonly PdfPage[]): Uint8Array {
  const objects: Part[][] = [
    ["<< /Type /Catalog /Pages 2 0 R >>"],
    [],
    ["<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"],
  ];
  const kids: number[] = [];
  for (const page of pages) {
    kids.push(objects.length + 1);
    objects.push(...pageObjects(page, objects.length + 1));
  }
  objects[1] = [
    `<< /Type /Pages /Count ${kids.length} /Kids [${kids.map((kid) => `${kid} 0 R`).join(" ")}] >>`,
  ];
  const parts: Uint8Array[] = [Buffer.from("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  let offset = parts[0]?.byteLength ?? 0;
  const offsets: number[] = [];
  const write = (part: Part): void => {
    const bytes = typeof part === "string" ? Buffer.from(part, "latin1") : part;
    parts.push(bytes);
    offset += bytes.byteLength;
  };
  objects.forEach((object, index) => {
    offsets.push(offset);
    for (const part of [`${index + 1} 0 obj\n`, ...object, "\nendobj\n"]) write(part);
  });
  const table = offsets.map((each) => `${String(each).padStart(10, "0")} 00000 n \n`).join("");
  const count = objects.length + 1;
  const end = `trailer << /Size ${count} /Root 1 0 R >>\nstartxref\n${offset}\n%%EOF`;
  write(`xref\n0 ${count}\n0000000000 65535 f \n${table}${end}`);
  return Buffer.concat(parts);
}
