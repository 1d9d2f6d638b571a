import { scanMembers } from "../../../platform/lib/json-members.ts";

/** JSON text of one member's value; undefined where the object has no such member, or null. */
export function memberText(text: string, key: string): string | undefined {
  const member = scanMembers(text).findLast((each) => each.key === key);
  const value = member === undefined ? undefined : text.slice(member.valueStart, member.valueEnd);
  return value === "null" ? undefined : value;
}
