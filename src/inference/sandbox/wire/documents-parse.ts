import { z } from "zod";
import { openaiSurface } from "./plain-surface.ts";

const parseBody = z.looseObject({
  source: z.looseObject({
    type: z.enum(["url", "workspace_file", "parse_result"]),
    url: z.string().startsWith("https://").optional(),
    file_name: z.string().optional(),
  }),
  page_ranges: z.array(z.object({ start: z.int().min(1), end: z.int().min(1) })).optional(),
  chunking: z.looseObject({ strategy: z.enum(["none", "page", "section"]).optional() }).optional(),
});

/** Pages of a document whose ranges are not named. */
const pagesOfAll = 2;

/**
 * `POST /v1/documents/parse`: a made-up document that says where it comes from. Nothing is fetched. Directives
 * stand in the source's URL or file name.
 */
export const documentsParse = openaiSurface((body) => {
  const { source, page_ranges: ranges, chunking } = parseBody.parse(body);
  const name = source.file_name ?? `${source.type}.pdf`;
  const pages =
    ranges?.reduce((sum, { start, end }) => sum + Math.max(0, end - start + 1), 0) ?? pagesOfAll;
  const markdown = `# ${name}\n\nA simulated document of ${pages} pages.`;
  return {
    text: `${source.url ?? ""} ${name}`,
    answer: () => ({
      result_type: "document",
      file_name: name,
      lane: "sandbox",
      document: {
        page_count: pages,
        markdown,
        text: markdown.replace(/^# /, ""),
        chunks: (chunking?.strategy ?? "none") === "none" ? [] : [{ index: 0, text: markdown }],
      },
      ocr_applied: false,
      units: pages,
      disclosures: ["This result is simulated."],
    }),
  };
});
