import type { CallOrigin, InferenceCall } from "../../inference-call.ts";
import { assertServesChat } from "../../chat-asks.ts";
import { surfaceCall, tokensOfTexts } from "../surface-call.ts";
import { interpretOcr, ocrPrompt, pageTokensMax, type OcrPage } from "./interpret-ocr.ts";

/** Tokens of a page's picture, for holds and for usage that no provider reported; models count 1,000 to 3,000. */
const pictureTokens = 1_600;

/** Input tokens that reading a file takes: those of its pages' pictures and of what is asked about each. */
export const ocrTokens = (pages: readonly OcrPage[]): number =>
  pictureCount(pages) * (pictureTokens + tokensOfTexts([ocrPrompt]));

const pictureCount = (pages: readonly OcrPage[]): number =>
  pages.filter((page) => "jpeg" in page).length;

/** The call of a file of which a model reads at least one page; all of them are one call, and one charge. */
export function ocrCall(
  origin: CallOrigin,
  { model, pages }: { model: string; pages: readonly OcrPage[] },
): InferenceCall {
  return surfaceCall(origin, {
    surface: "chat",
    recordedAs: "ocr",
    text: "",
    routing: { model },
    asks: {
      texts: pictureCount(pages),
      outputTokensMax: pageTokensMax,
      inputTokens: ocrTokens(pages),
    },
    interpret: (route) => interpretOcr(pages, route),
    assertServes: assertServesChat,
  });
}
