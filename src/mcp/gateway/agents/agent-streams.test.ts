import { expect, test } from "bun:test";
import { unlimitedKey } from "../../../identity/keys/caller.ts";
import type { ToolCaller } from "../../mcp-service.ts";
import { AgentStreams } from "./agent-streams.ts";

const owned = { id: "key_1", workspaceId: "ws_1", creatorUserId: "usr_1" };

const callerWith = (allowedTools: string[] | null): ToolCaller =>
  ({
    kind: "llm-key",
    key: { ...unlimitedKey(owned), allowedTools },
    workspace: { id: "ws_1" },
  }) as ToolCaller;

/** Opens a stream, which notes what it is sent. */
function openOne(liveCaller: (caller: ToolCaller) => ToolCaller | undefined) {
  const streams = new AgentStreams({ liveCaller });
  const sent: string[] = [];
  const limits = { keys: [["docs"]], request: null };
  streams
    .add({ caller: callerWith(["docs"]), serverId: null, limits })
    ?.attach({ send: (kind) => void sent.push(kind), end: () => void sent.push("end") });
  return { streams, sent };
}

test("a stream ends with its credential", () => {
  const { streams, sent } = openOne(() => undefined);
  streams.check();
  expect(sent).toEqual(["end"]);
  expect(streams.owners).toEqual([]);
});

test("a credential that may use other tools is told, once", () => {
  const { streams, sent } = openOne(() => callerWith(["docs", "wiki"]));
  streams.check();
  streams.check();
  expect(sent).toEqual(["tools", "prompts", "resources"]);
});

test("a credential that may use the same tools is not told", () => {
  const { streams, sent } = openOne((caller) => caller);
  streams.check();
  expect(sent).toEqual([]);
});

test("no stream is opened once the gateway is about to end", () => {
  const { streams, sent } = openOne((caller) => caller);
  streams.end();
  expect(sent).toEqual(["end"]);
  const limits = { keys: [], request: null };
  expect(streams.add({ caller: callerWith(null), serverId: null, limits })).toBeUndefined();
});
