import type { TextPart } from "../../canonical/content.ts";

/** What stands between two messages of one answer where chat has but one text. */
export const messageSeparator = "\n\n";

/** The texts of one answer as chat's one string: pieces of a message are joined, messages set apart. */
export const joinTexts = (texts: readonly TextPart[]): string =>
  texts.reduce(
    (joined, part) =>
      joined + (part.startsMessage === true && joined !== "" ? messageSeparator : "") + part.text,
    "",
  );
