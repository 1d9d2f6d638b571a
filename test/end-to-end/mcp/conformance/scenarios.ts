/** What a scenario of the suite is run against, or why it does not apply. */
export type Target = "server" | "fixture" | { notApplicable: string };

const notApplicable = (reason: string): Target => ({ notApplicable: reason });

const noLogs = notApplicable("no log messages are sent, and the capability is not declared");
const noProgress = notApplicable(
  "requests up to 2025-11-25 are answered with one JSON document, and no tool reports progress",
);
const noRequests = notApplicable(
  "up to 2025-11-25 servers ask clients within a session; this one is stateless and asks nothing",
);
const noSubscriptions = notApplicable(
  "resources/subscribe is not declared: resources change with the catalog alone",
);
const noSessions = notApplicable("there are no sessions and no streams of their own to resume");
const noTasks = notApplicable("the extension io.modelcontextprotocol/tasks is not offered");
const pending = notApplicable(
  "the suite lists it as pending: its own fixture does not pass it, and it is not scored",
);

const contents = {
  "tools-call-simple-text": "fixture",
  "tools-call-image": "fixture",
  "tools-call-audio": "fixture",
  "tools-call-embedded-resource": "fixture",
  "tools-call-mixed-content": "fixture",
  "tools-call-error": "fixture",
  "resources-read-text": "fixture",
  "resources-read-binary": "fixture",
  "resources-templates-read": "fixture",
  "prompts-get-simple": "fixture",
  "prompts-get-with-args": "fixture",
  "prompts-get-embedded-resource": "fixture",
  "prompts-get-with-image": "fixture",
} as const satisfies Record<string, Target>;

const lists = {
  "completion-complete": "server",
  "tools-list": "server",
  "resources-list": "server",
  "prompts-list": "server",
  "dns-rebinding-protection": "server",
} as const satisfies Record<string, Target>;

/**
 * Every scenario that a revision requires of servers, and those that it runs without scoring them.
 */
export const scenarios: Readonly<Record<string, Readonly<Record<string, Target>>>> = {
  "2025-11-25": {
    ...lists,
    ...contents,
    "server-initialize": "server",
    ping: "server",
    "logging-set-level": noLogs,
    "tools-call-with-logging": noLogs,
    "tools-call-with-progress": noProgress,
    "tools-call-sampling": noRequests,
    "tools-call-elicitation": noRequests,
    "elicitation-sep1034-defaults": noRequests,
    "elicitation-sep1330-enums": noRequests,
    "resources-subscribe": noSubscriptions,
    "resources-unsubscribe": noSubscriptions,
    "server-sse-multiple-streams": noSessions,
    "server-session-lifecycle": noSessions,
    "server-sse-polling": noSessions,
    "json-schema-2020-12": pending,
  },
  "2026-07-28": {
    ...lists,
    ...contents,
    "server-stateless": "fixture",
    "server-sse-multiple-streams": "server",
    "tools-call-with-progress": "fixture",
    "sep-2164-resource-not-found": "server",
    caching: "server",
    "http-header-validation": "server",
    "http-custom-header-server-validation": "fixture",
    "input-required-result-basic-elicitation": "fixture",
    "input-required-result-basic-sampling": "fixture",
    "input-required-result-basic-list-roots": "fixture",
    "input-required-result-request-state": "fixture",
    "input-required-result-multiple-input-requests": "fixture",
    "input-required-result-multi-round": "fixture",
    "input-required-result-missing-input-response": "fixture",
    "input-required-result-non-tool-request": "fixture",
    "input-required-result-result-type": "fixture",
    "input-required-result-unsupported-methods": "server",
    "input-required-result-tampered-state": "fixture",
    "input-required-result-capability-check": "fixture",
    "input-required-result-ignore-extra-params": "fixture",
    "input-required-result-validate-input": "fixture",
    "json-schema-2020-12": pending,
    "tasks-lifecycle": noTasks,
    "tasks-capability-negotiation": noTasks,
    "tasks-wire-fields": noTasks,
    "tasks-request-state-removal": noTasks,
    "tasks-mrtr-input": noTasks,
    "tasks-request-headers": noTasks,
    "tasks-dispatch-and-envelope": noTasks,
    "tasks-status-notifications": noTasks,
    "tasks-required-task-error": noTasks,
    "tasks-mrtr-composition": noTasks,
  },
};
