import {
  editMembers,
  replaceEach,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";

/** The prefix that all events of a stream share, as it came and as the client gets it. */
export interface SwappedPrefix {
  from: string;
  to: string;
}

const names = ["id", "model", "choices"] as const;
const choicesIndex = 2;

/**
 * Returns an event with another id and model, given as JSON text, and the prefix that events like
 * it share: the text before `choices`; undefined prefix where id or model are elsewhere.
 */
export function swapped(
  data: string,
  shown: { id: string; model: string },
): { text: string; prefix: SwappedPrefix | undefined } {
  let placedBefore = 0;
  let start = 0;
  const text = replaceEach(data, names, (index, valueStart, valueEnd) => {
    if (index === choicesIndex) {
      start = data.lastIndexOf('"choices"', valueStart);
      return data.slice(valueStart, valueEnd);
    }
    if (start === 0) placedBefore += 1;
    return index === 0 ? shown.id : shown.model;
  });
  if (text === undefined) return swappedByName(data, shown);
  const from = data.slice(0, start);
  const isFirst = placedBefore === choicesIndex;
  return {
    text,
    prefix: isFirst ? { from, to: text.slice(0, start + text.length - data.length) } : undefined,
  };
}

/** Does the same where a member is missing, repeated or has an escape in its name. */
function swappedByName(
  data: string,
  shown: { id: string; model: string },
): ReturnType<typeof swapped> {
  const edits = new Map(Object.entries(shown));
  return { text: editMembers(data, edits), prefix: swappedPrefix(data, edits) };
}

function swappedPrefix(
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
