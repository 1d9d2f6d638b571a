import { z } from "zod";
import { defineTool } from "../tool.ts";

export const getRun = defineTool({
  name: "get_run",
  title: "Show a run",
  description:
    "Shows what is left of a run, in USD and requests, with its status and the runs in it. With the key of a run, id may be left " +
    "out: it is then that run.",
  scope: null,
  effect: "nothing",
  endpoint: "GET /runs/:id",
  input: z.object({
    id: z.string().default("self").describe("Id of the run. Default: the run whose key asks."),
  }),
  run: ({ id }, { ask }) => ask({ endpoint: "GET /runs/:id", params: { id } }),
});
