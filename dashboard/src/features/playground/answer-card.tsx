import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { count, duration, requestCost } from "../../lib/format.ts";
import { Actions, Button, Card, Code, Problem, Select, Status } from "../../ui/parts.tsx";
import { type Language, codeOf, languages } from "./code.ts";
import type { ChatBody } from "./draft.ts";
import own from "./playground.module.css";
import type { Answer } from "./stream.ts";

/** Where the time, the tokens and the money of an answer went. */
function Figures({ answer, model }: { answer: Answer; model: string }) {
  const speed =
    answer.tokens === undefined || answer.totalMs === undefined
      ? undefined
      : answer.tokens / (answer.totalMs / 1_000);
  return (
    <dl className={own["figures"]}>
      <div>
        <dt>Route</dt>
        <dd>
          {answer.model ?? model}
          {answer.providers === undefined ? "" : ` by ${answer.providers}`}
        </dd>
      </div>
      <div>
        <dt>First token</dt>
        <dd>{duration(answer.firstTokenMs)}</dd>
      </div>
      <div>
        <dt>Total</dt>
        <dd>{duration(answer.totalMs)}</dd>
      </div>
      <div>
        <dt>Tokens</dt>
        <dd>
          {count(answer.tokens)}
          {speed === undefined ? "" : `, ${speed.toFixed(0)} a second`}
        </dd>
      </div>
      <div>
        <dt>Cost</dt>
        <dd>{requestCost(answer.costUsd)}</dd>
      </div>
    </dl>
  );
}

function Text({ answer }: { answer: Answer }) {
  const { text, reasoning, calls } = answer;
  return (
    <div className={own["answer"]} aria-live="polite">
      {reasoning === "" ? null : (
        <details>
          <summary>Reasoning</summary>
          {reasoning}
        </details>
      )}
      {text === "" && calls.length === 0 && answer.state === "waiting"
        ? "Waiting for the first token"
        : text}
      {calls.map((call, index) => (
        <Code key={index} text={`${call.name}(${call.arguments})`} />
      ))}
    </div>
  );
}

/** One model's answer, with what it took, and the program that asks the same. */
export function AnswerCard({
  model,
  answer,
  body,
}: {
  model: string;
  answer: Answer | undefined;
  body: ChatBody | undefined;
}) {
  const [language, setLanguage] = useState<Language | "">("");
  return (
    <Card
      title={model === "" ? "Answer" : model}
      actions={
        body === undefined ? undefined : (
          <Actions>
            <Select
              label={`${model} as code`}
              value={language}
              onChange={(chosen) => setLanguage(chosen as Language | "")}
              options={[["", "Answer"], ...languages]}
            />
          </Actions>
        )
      }
    >
      {language !== "" && body !== undefined ? (
        <Code text={codeOf(language, location.origin, body)} />
      ) : null}
      {answer === undefined ? (
        <p>No answer yet.</p>
      ) : (
        <>
          <Text answer={answer} />
          {answer.problem === undefined ? null : (
            <Problem error={new Error(answer.problem)} traceId={answer.traceId} />
          )}
          {answer.state === "stopped" ? <Status kind="warning">stopped</Status> : null}
          <Figures answer={answer} model={model} />
          {answer.generationId === undefined ||
          answer.state === "waiting" ||
          answer.state === "streaming" ? null : (
            <Link to="/activity" search={{ id: answer.generationId }}>
              Open the record
            </Link>
          )}
        </>
      )}
    </Card>
  );
}

/** Copies a link that opens the playground with the same draft. */
export function ShareButton({ fragment }: { fragment: () => string }) {
  const [copied, setCopied] = useState(false);
  const share = (): void => {
    // In the address as well, so that a reload and a bookmark have it where the clipboard is
    // refused.
    history.replaceState(history.state, "", location.pathname + location.search + fragment());
    void navigator.clipboard.writeText(location.href).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <Button look="plain" onClick={share}>
      {copied ? "Link copied" : "Share as link"}
    </Button>
  );
}
