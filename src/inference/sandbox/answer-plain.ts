import { readDirectives } from "./directives.ts";
import { obeyBeforeAnswer, refuse, seedOf, understand } from "./refuse.ts";
import type { PlainSurface } from "./wire/plain-surface.ts";

/**
 * Answers a request of a surface without conversation; of the directives, delays and refusals
 * count.
 */
export async function answerPlain(
  surface: PlainSurface,
  bodyText: string,
  { signal }: { signal: AbortSignal },
): Promise<Response> {
  const seed = seedOf(bodyText);
  const understood = understand(bodyText, surface.read);
  if (!understood.ok) return refuse(surface, { ...understood, requestId: seed });
  const { request } = understood;
  const directives = readDirectives(request.text);
  const refused = await obeyBeforeAnswer(directives, { dialect: surface, requestId: seed, signal });
  return refused ?? Response.json(request.answer(seed));
}
