import { expect } from "bun:test";
import { at, listAt, textAt } from "../api/at.ts";
import type { Ask, TwoWorkspaces } from "../api/two-workspaces.ts";

/** A `SKILL.md` of this name. */
export const skillDocument = (name: string, text = "Do it well."): string =>
  `---\nname: ${name}\ndescription: How ${name} is done.\n---\n\n# ${name}\n\n${text}\n`;

/** Fields of a prompt, with changes. */
export const promptFields = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  title: "Review code",
  description: "Finds mistakes.",
  body: "You review code. {{diff}}",
  category: "coding",
  ...changes,
});

/** The JSON of an answer that has to succeed. */
export async function json(answer: Promise<Response>): Promise<unknown> {
  const response = await answer;
  const body: unknown = await response.json();
  if (!response.ok) throw new Error(`answered ${response.status}: ${JSON.stringify(body)}`);
  return body;
}

/** Makes a prompt and gives its id. */
export const publish = async (ask: Ask, changes: Record<string, unknown> = {}): Promise<string> =>
  textAt(await json(ask("POST", "/prompts", promptFields(changes))), "id");

/** Has an operator approve a prompt: the first workspace's key is one. */
export const approve = ({ own }: TwoWorkspaces, id: string): Promise<unknown> =>
  json(own("POST", `/admin/prompts/${id}/approve`));

/** Ids of a list, in its order. */
export const idsOf = async (ask: Ask, path: string): Promise<unknown[]> =>
  listAt(await json(ask("GET", path)), "data").map((each) => at(each, "id"));

/** Expects that a record does not exist for a caller: 404 to every request. */
export async function expectHidden(ask: Ask, path: string): Promise<void> {
  const writes: [string, string, unknown][] = [
    ["GET", "", undefined],
    ["PATCH", "", {}],
    ["DELETE", "", undefined],
    ["GET", "/versions", undefined],
    ["POST", "/star", undefined],
    ["DELETE", "/star", undefined],
    ["POST", "/fork", {}],
  ];
  for (const [method, rest, body] of writes) {
    expect([method, rest, (await ask(method, path + rest, body)).status]).toEqual([
      method,
      rest,
      404,
    ]);
  }
}
