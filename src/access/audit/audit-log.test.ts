import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { MemoryCommits } from "../../../test/support/memory-commits.ts";
import { Reply } from "../../http/reply.ts";
import type { RequestContext } from "../define-endpoint.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import { auditChange, AuditLog, isAudited } from "./audit-log.ts";

const endpoint = {
  method: "PATCH",
  path: "/keys/:hash",
  access: { managementScope: "write:llm-keys" },
  tag: "Account",
} as const;
const caller = {
  kind: "management-key",
  key: { id: "mgk_1", label: "ak_...1" },
  workspace: { id: "ws_1" },
};
const newContext = (): RequestContext =>
  ({
    caller,
    body: { name: "new" },
    request: { params: { hash: "abc" } },
    clientAddress: () => "203.0.113.7",
  }) as unknown as RequestContext;

function newAudit() {
  const commits = new MemoryCommits();
  const errors: unknown[] = [];
  const log = new AuditLog({ commits, clock: new FakeClock() });
  /** What was written: tables and values without id and time. */
  const written = (): unknown[] =>
    commits.units.flatMap(({ inserts }) =>
      inserts.map(({ statement, values }) => [statement.table, ...values.slice(3)]),
    );
  const onError = (error: unknown): void => void errors.push(error);
  return { commits, errors, written, auditing: { log, operatorWorkspaceId: "ws_first", onError } };
}

const intent = [
  "audit_log",
  "management-key",
  "mgk_1",
  "ak_...1",
  "203.0.113.7",
  "PATCH /keys/:hash",
  "abc",
  '["name"]',
];

test("auditChange writes the change before it happens and the outcome after it", async () => {
  const { auditing, written } = newAudit();
  const context = newContext();
  await auditChange(auditing, { endpoint, context }, () => {
    expect(written()).toEqual([intent]);
    context.changed = "key_1";
    return new Response("{}");
  });
  expect(written()).toEqual([intent, ["audit_outcomes", 200, "key_1"]]);
});

test("auditChange records the status of refused and failed changes", async () => {
  for (const [error, status] of [
    [new GatewayError("not_found", "none"), 404],
    [new Error("broken"), 500],
  ] as const) {
    const { auditing, written } = newAudit();
    await expect(
      auditChange(auditing, { endpoint, context: newContext() }, () => Promise.reject(error)),
    ).rejects.toBe(error);
    expect(written()).toEqual([intent, ["audit_outcomes", status, null]]);
  }
});

test("auditChange refuses the change if the log cannot be written", async () => {
  const { auditing, commits, written } = newAudit();
  commits.failNext = true;
  let done = false;
  const change = auditChange(auditing, { endpoint, context: newContext() }, () => {
    done = true;
    return new Response();
  });
  await expect(change).rejects.toMatchObject({ code: "service_unavailable" });
  expect([done, written()]).toEqual([false, []]);
});

test("auditChange writes to the log of the changed workspace too, and to the service's for operators", async () => {
  const told = async (
    access: typeof endpoint.access | { managementScope: "write:llm-keys"; operator: true },
    changedIn?: string,
  ) => {
    const { auditing, commits } = newAudit();
    const context = newContext();
    await auditChange(auditing, { endpoint: { ...endpoint, access }, context }, () => {
      if (changedIn !== undefined) context.changedIn = changedIn;
      return new Response();
    });
    return commits.units
      .flatMap(({ inserts }) =>
        inserts.map(({ statement, values }) => `${statement.table} ${String(values[1])}`),
      )
      .sort();
  };
  const operator = { ...endpoint.access, operator: true } as const;
  const own = ["audit_log ws_1", "audit_outcomes ws_1"];
  expect(await told(endpoint.access)).toEqual(own);
  expect(await told(endpoint.access, "ws_1")).toEqual(own);
  expect(await told(endpoint.access, "ws_2")).toEqual([
    "audit_log ws_1",
    "audit_log ws_2",
    "audit_outcomes ws_1",
    "audit_outcomes ws_2",
  ]);
  expect(await told(operator)).toEqual([
    "audit_log ws_1",
    "audit_log ws_first",
    "audit_outcomes ws_1",
    "audit_outcomes ws_first",
  ]);
});

test("auditChange logs an error and returns the response if the outcome cannot be written", async () => {
  const { auditing, commits, errors } = newAudit();
  const response = await auditChange(auditing, { endpoint, context: newContext() }, () => {
    commits.failNext = true;
    return new Reply("made", { headers: {} });
  });
  expect([response.body, errors.length]).toEqual(["made", 1]);
});

test("isAudited is false for reads, inference and endpoints declared as unaudited", () => {
  const unaudited = [
    { ...endpoint, method: "GET" as const },
    { ...endpoint, unaudited: true as const },
    {
      method: "POST" as const,
      path: "/chat/completions",
      access: { llmKey: true as const },
      tag: "Inference",
    },
  ];
  expect(unaudited.map(isAudited)).toEqual([false, false, false]);
});
