const browsers = [
  ["Edg/", "Edge"],
  ["OPR/", "Opera"],
  ["Firefox/", "Firefox"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
] as const;
const systems = [
  ["Android", "Android"],
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["CrOS", "ChromeOS"],
  ["Linux", "Linux"],
] as const;

const nameIn = (agent: string, names: readonly (readonly [string, string])[]): string | undefined =>
  names.find(([part]) => agent.includes(part))?.[1];

/** Names the browser and system of a `User-Agent` header; other programs are named as they name themselves. */
export function deviceOf(agent: string | null): string {
  if (agent === null || agent === "") return "Unknown device";
  const browser = nameIn(agent, browsers);
  const system = nameIn(agent, systems);
  if (browser === undefined) return agent;
  return system === undefined ? browser : `${browser} on ${system}`;
}
