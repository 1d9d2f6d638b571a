import type { Browser, PeopledGateway } from "../../api/people-browser.ts";
import { publicOrigin, startPeopled } from "../../api/people-browser.ts";
import { decideAt, type Decided } from "../../consent/flows.ts";

/** A gateway with an owner that names itself by the address at which programs reach it. */
export async function startPeopledMcp(): Promise<PeopledGateway> {
  let origin = publicOrigin;
  const people = await startPeopled(undefined, { publicUrl: () => origin, sandbox: true });
  origin = people.gateway().origin;
  people.owner.origin = origin;
  return people;
}

/**
 * Opens the page of consent at a URL, approves, and goes back to where the answer leads, as a
 * browser does.
 */
export async function approveAt(
  person: Browser,
  authorizationUrl: string,
  decided: Decided = {},
): Promise<Response> {
  const { pathname, search } = new URL(authorizationUrl);
  const answer = await decideAt(person, pathname + search, decided);
  return fetch(answer.headers.get("location") ?? "");
}

/**
 * The first match in what a program prints, as soon as it is printed, and all of it at its end.
 * Throws where nothing matches.
 */
export async function firstMatch(
  output: ReadableStream<Uint8Array>,
  pattern: RegExp,
): Promise<{ match: string; rest: Promise<string> }> {
  const reader = output.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const more = async (): Promise<boolean> => {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: !done });
    return !done;
  };
  const all = async (): Promise<string> => ((await more()) ? all() : text);
  for (;;) {
    const goesOn = await more();
    const [match] = pattern.exec(text) ?? [];
    if (match !== undefined) return { match, rest: all() };
    if (!goesOn) throw new Error(`nothing matches ${String(pattern)} in: ${text}`);
  }
}
