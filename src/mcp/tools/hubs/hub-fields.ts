import { z } from "zod";

/** Arguments that tools of the hub share. The endpoints check their bounds. */
export const tagsField = {
  tags: z.array(z.string()).optional().describe("Tags: at most 20 words, in lower case."),
};

/** Returns the argument for who can see a record. */
export const visibilityOf = (standard: string) => ({
  visibility: z
    .enum(["private", "workspace", "public"])
    .optional()
    .describe(`Visibility. Default ${standard}.`),
});
