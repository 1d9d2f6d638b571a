import { deflateSync } from "node:zlib";
import { writePdf } from "../write-pdf.ts";
import { latin, type HostileFile } from "./hostile-file.ts";

/**
 * Returns a PDF of these objects, of which the first is the catalog; `trailer` holds entries of the
 * trailer dictionary.
 */
function pdf(objects: readonly (string | Uint8Array)[], trailer = "/Root 1 0 R"): Buffer {
  const parts: Buffer[] = [latin("%PDF-1.7\n")];
  const offsets: number[] = [];
  let length = parts[0]?.length ?? 0;
  const write = (part: string | Uint8Array): void => {
    const bytes = typeof part === "string" ? latin(part) : Buffer.from(part);
    parts.push(bytes);
    length += bytes.length;
  };
  objects.forEach((object, index) => {
    offsets.push(length);
    for (const part of [`${index + 1} 0 obj\n`, object, "\nendobj\n"]) write(part);
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const count = objects.length + 1;
  const start = length;
  write(
    `xref\n0 ${count}\n0000000000 65535 f \n${table}trailer << /Size ${count} ${trailer} >>\nstartxref\n${start}\n%%EOF`,
  );
  return Buffer.concat(parts);
}

const catalog = "<< /Type /Catalog /Pages 2 0 R >>";
const pagesOf = (kids: string, count = 1): string =>
  `<< /Type /Pages /Count ${count} /Kids [${kids}] >>`;
const page = (more = "/MediaBox [0 0 99 99]"): string => `<< /Type /Page /Parent 2 0 R ${more} >>`;

/** Returns a chain of page trees, each the only child of the one before. */
function deepTree(depth: number): Buffer {
  const trees = Array.from({ length: depth }, (_, index) => pagesOf(`${index + 3} 0 R`));
  return pdf([catalog, ...trees, pagesOf(`2 0 R`)]);
}

/** Returns a PDF of one page with this compressed content. */
function drawing(content: Uint8Array): Buffer {
  const packed = deflateSync(content);
  const font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>";
  return pdf([
    catalog,
    pagesOf("3 0 R"),
    page("/MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >>"),
    Buffer.concat([
      latin(`<< /Filter /FlateDecode /Length ${packed.length} >>\nstream\n`),
      packed,
      latin("\nendstream"),
    ]),
    font,
  ]);
}

const harmless: Readonly<Record<string, Uint8Array>> = {
  "a billion pages in its count": pdf([catalog, pagesOf("3 0 R", 1_000_000_000), page()]),
  "a font that is its own": pdf([
    catalog,
    pagesOf("3 0 R"),
    page("/MediaBox [0 0 9 9] /Contents 4 0 R /Resources 5 0 R"),
    "4 0 R",
    "5 0 R",
  ]),
  "8 MiB of blanks in a few kilobytes": drawing(Buffer.alloc(8 * 1024 * 1024, " ")),
};

/** Returns PDFs that mislead the program that reads them. */
export function hostilePdfs(): HostileFile[] {
  const files: Record<string, Uint8Array> = {
    "a page tree that is its own child": pdf([catalog, pagesOf("2 0 R")]),
    "two page trees that are each other's child": pdf([
      catalog,
      pagesOf("3 0 R"),
      pagesOf("2 0 R"),
    ]),
    "a page tree of 5,000 levels that ends in itself": deepTree(5_000),
    "a count below zero": pdf([catalog, pagesOf("3 0 R", -1), page()]),
    "201 pages": writePdf(Array.from({ length: 201 }, () => ({ texts: [] }))),
    "31 pages without text": writePdf(Array.from({ length: 31 }, () => ({ texts: [] }))),
    "no pages": pdf([catalog, pagesOf("", 0)]),
    "a page that is a number": pdf([catalog, pagesOf("3 0 R"), "42"]),
    "a page that is not there": pdf([catalog, pagesOf("9 0 R")]),
    "a catalog that is a text": pdf(["(catalog)", pagesOf("3 0 R"), page()]),
    "a catalog without pages": pdf(["<< /Type /Catalog >>"]),
    "no catalog": pdf([catalog, pagesOf("3 0 R"), page()], ""),
    "a catalog that is not there": pdf([pagesOf("2 0 R"), page()], "/Root 99 0 R"),
    "a password": pdf(
      [catalog, pagesOf("3 0 R"), page()],
      "/Root 1 0 R /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4" +
        ` /O <${"41".repeat(32)}> /U <${"42".repeat(32)}> >> /ID [<00> <00>]`,
    ),
    "a lock that nobody knows": pdf(
      [catalog, pagesOf("3 0 R"), page()],
      "/Root 1 0 R /Encrypt << /Filter /Own /V 9 >>",
    ),
    "arrays in arrays": Buffer.concat([
      latin("%PDF-1.7\n1 0 obj\n"),
      Buffer.alloc(200_000, "["),
      latin("\nendobj"),
    ]),
    "dictionaries in dictionaries": latin(`%PDF-1.7\n1 0 obj\n${"<</a".repeat(50_000)}\nendobj`),
    "a table that leads to itself": latin(
      "%PDF-1.7\nxref\n0 0\ntrailer << /Size 1 /Prev 9 /Root 1 0 R >>\nstartxref\n9\n%%EOF",
    ),
    "a table behind its end": latin("%PDF-1.7\nstartxref\n4294967295\n%%EOF"),
    "nothing but comments": latin(`%PDF-1.7\n${"% nothing\n".repeat(20_000)}`),
    "objects of another kind": pdf([
      deflateSync(Buffer.alloc(100_000)),
      deflateSync(Buffer.alloc(100_000)),
    ]),
    "more pieces of text than a page can hold": drawing(
      Buffer.from("BT /F 9 Tf (ab) Tj ET\n".repeat(60_000)),
    ),
  };
  return [
    ...Object.entries(files).map(
      ([name, bytes]): HostileFile => ({ name: `a PDF with ${name}`, bytes }),
    ),
    ...Object.entries(harmless).map(
      ([name, bytes]): HostileFile => ({ name: `a PDF with ${name}`, bytes, harmless: true }),
    ),
  ];
}
