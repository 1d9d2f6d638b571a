import { Link } from "@tanstack/react-router";
import { Card, Status } from "../../ui/parts.tsx";
import style from "./set-up.module.css";

/** What leads to the first real answer, until all of it is done. */
export function SetUp({ hasKey, hasRequest }: { hasKey: boolean; hasRequest: boolean }) {
  const steps = [
    { done: hasKey, label: "Create a key", to: "/keys" as const },
    { done: hasRequest, label: "Send a request", to: "/playground" as const },
  ];
  const done = steps.filter((step) => step.done).length;
  if (done === steps.length) return null;
  return (
    <Card>
      <div className={style.row}>
        <strong>Set up: {done} of {steps.length}</strong>
        {steps.map(({ done: isDone, label, to }) => (
          <span key={label}>{isDone ? <Status kind="good">{label}</Status> : <Link to={to}>{label}</Link>}</span>
        ))}
      </div>
    </Card>
  );
}
