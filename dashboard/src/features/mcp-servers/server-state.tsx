import { Status } from "../../ui/values.tsx";
import style from "../../ui/ui.module.css";
import type { McpServer, Tool } from "./api.ts";

const kinds = { ready: "good", unreachable: "bad", not_connected: "warning" } as const;
const words = {
  ready: "ready",
  unreachable: "unreachable",
  not_connected: "not connected",
} as const;

/** Whether a server answers, and if not, why. */
export function ServerState({ server: { status, error, health } }: { server: McpServer }) {
  return (
    <>
      {health.circuit === "open" ? (
        <Status kind="bad">left alone after failures</Status>
      ) : (
        <Status kind={kinds[status]}>{words[status]}</Status>
      )}
      {status === "unreachable" && error !== null ? (
        <div className={style.hint}>{error}</div>
      ) : null}
    </>
  );
}

const toolKinds = {
  active: "good",
  not_allowed: undefined,
  changed: "warning",
  gone: undefined,
} as const;
const toolWords = {
  active: "in use",
  not_allowed: "not allowed",
  changed: "changed, out of use",
  gone: "no longer listed",
} as const;

/** Whether a tool may be called, and if not, why. */
export function ToolState({ status }: Pick<Tool, "status">) {
  const kind = toolKinds[status];
  const text = toolWords[status];
  return kind === undefined ? <Status>{text}</Status> : <Status kind={kind}>{text}</Status>;
}
