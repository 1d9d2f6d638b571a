import type { Reply } from "../support/client-under-test.ts";

/** What is left of a stream that its reader left. */
export const emptyReply: Reply = {
  text: "",
  calls: [],
  finish: "stop",
  usage: { input: 0, output: 0, cost: undefined },
  native: undefined,
};
