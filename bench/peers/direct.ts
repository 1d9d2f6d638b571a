import { noWork, type Peer } from "./peer.ts";

/** Nothing between load generator and mock: the baseline that added latencies are counted from. */
export const direct: Peer = {
  name: "direct",
  path: "/v1/chat/completions",
  headers: { authorization: "Bearer x" },
  modelPrefix: "",
  chargesRequests: false,
  work: noWork,
  prepare: async () => ({ ready: true, version: "mock upstream" }),
  start: async ({ mock }) => ({
    port: mock.port,
    pid: mock.child.pid,
    stop: async () => undefined,
  }),
};
