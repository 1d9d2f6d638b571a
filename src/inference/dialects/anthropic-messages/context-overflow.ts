import type { ReportedError } from "../../canonical/reported-error.ts";
import { asString } from "../request-fields.ts";

/** What names the bound, in the words of vendors and servers: OpenAI, vLLM, Mistral, Gemini, llama.cpp, Ollama. */
const boundPattern =
  /(\d[\d,_]*) (?:tokens? )?maximum|(?:maximum|limit|context (?:length|window|size)|allowed|available|up to|max)[^\d]{0,60}?(\d[\d,_]*)/gi;
const anyNumber = /\d[\d,_]*/g;

/** Smaller numbers count something else: messages, images, a position. */
const tokensMin = 256;

/** Anthropic's own two sentences; the second one makes clients ask for less output. */
const ownForms =
  /prompt is too long: \d+ tokens > \d+ maximum|input length and `?max_tokens`? exceed context limit: \d+ \+ \d+ > \d+/i;

const asTokens = (text: string): number => Number(text.replace(/[,_]/g, ""));

/**
 * The one sentence that Anthropic's clients act upon when a prompt is too long (Claude Code compacts the
 * conversation): `prompt is too long: N tokens > M maximum`, with the numbers of the upstream's own words.
 */
export function contextOverflowText({ message, metadata }: ReportedError): string {
  const said = asString(metadata?.upstream_message) ?? message;
  const own = ownForms.exec(said);
  if (own !== null) return own[0];
  const numbers = (said.match(anyNumber) ?? []).map(asTokens).filter((count) => count >= tokensMin);
  const bounds = [...said.matchAll(boundPattern)]
    .map((match) => asTokens(match[1] ?? match[2] ?? ""))
    .filter((count) => count >= tokensMin);
  const largest = Math.max(0, ...numbers);
  const maximum = bounds.find((bound) => bound < largest);
  if (maximum !== undefined) return `prompt is too long: ${largest} tokens > ${maximum} maximum`;
  return `prompt is too long: more tokens than the model's maximum (${said})`;
}
