import { expect, test } from "bun:test";
import { routeIn } from "../../../test/support/in-process.ts";
import { clientDialects } from "../dialects/index.ts";
import type { DialectDeviations } from "../dialects/deviations.ts";
import { chatRequirements } from "./chat-call.ts";

const { route } = routeIn("google-generate");
const chat = clientDialects["openai-chat"];
if (chat === undefined) throw new Error("there are no clients of chat");
const own = { type: "function", function: { name: "look_up" } };

/** Returns the names of the extras that a model of Google's is sent from a chat client. */
const sentTo = (upstreamModel: string, deviations: DialectDeviations, tools: object[]) => {
  const body = { messages: [], tools, web_search_options: {} };
  const requirements = chatRequirements(chat, { body, text: "" });
  const sent = requirements.extrasAt?.({
    ...route,
    upstreamModel,
    price: { version: "v1", base: { inputTokens: 1n, outputTokens: 1n, searches: 1n } },
    provider: { ...route.provider, local: false, deviations },
  });
  return sent?.tools.map(({ name }) => name) ?? [];
};

test.each<[model: string, deviations: DialectDeviations, tools: object[], sent: string[]]>([
  ["gemini-2.5-flash", {}, [], ["web_search"]],
  ["gemini-2.5-flash", {}, [own], []],
  ["gemini-3-flash-preview", {}, [own], ["web_search"]],
  ["gemini-3-flash-preview", { searchesAlone: true }, [own], []],
])(
  "a search at %s (%j) beside %j is held for where it is sent",
  (model, deviations, tools, sent) => {
    expect(sentTo(model, deviations, tools)).toEqual(sent);
  },
);
