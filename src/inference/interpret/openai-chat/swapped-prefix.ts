import { editMembers, scanMembers } from "../../../platform/lib/json-members.ts";

/** The start that all events of a stream share, as it came and as the client gets it. */
export interface SwappedPrefix {
  from: string;
  to: string;
}

/**
 * The text before `choices`, as it is and as the client gets it; undefined where id or model stand
 * elsewhere.
 */
export function swappedPrefix(
  data: string,
  edits: ReadonlyMap<string, string>,
): SwappedPrefix | undefined {
  const members = scanMembers(data);
  const index = members.findIndex((member) => member.key === "choices");
  const choices = members[index];
  const last = members[index - 1];
  if (choices === undefined || last === undefined) return undefined;
  const leading = new Set(members.slice(0, index).map((member) => member.key));
  if (!leading.has("id") || !leading.has("model")) return undefined;
  const head = editMembers(`${data.slice(0, last.valueEnd)}}`, edits);
  return {
    from: data.slice(0, choices.keyStart),
    to: head.slice(0, -1) + data.slice(last.valueEnd, choices.keyStart),
  };
}
