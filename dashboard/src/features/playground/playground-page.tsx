import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useSession } from "../../app/session.ts";
import { PageHead } from "../../app/shell.tsx";
import { withPlaygroundKey } from "../../lib/playground-key.ts";
import { count, duration, requestCost } from "../../lib/format.ts";
import { Actions, Button, Card, Code, Field, Input, Problem } from "../../ui/parts.tsx";
import style from "../../ui/ui.module.css";
import { modelsQuery } from "../models/api.ts";
import own from "./playground.module.css";
import { type Answer, type Message, askModel } from "./stream.ts";

const route = getRouteApi("/playground");
const columnsMax = 4;

const messagesOf = (system: string, prompt: string): Message[] => [
  ...(system === "" ? [] : [{ role: "system" as const, content: system }]), { role: "user" as const, content: prompt },
];

const codeOf = (model: string, messages: readonly Message[]): string =>
  `curl ${location.origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n  -d '${JSON.stringify({ model, messages }).replaceAll("'", "'\\''")}'`;

function AnswerCard({ model, answer, messages }: { model: string; answer: Answer | undefined; messages: readonly Message[] }) {
  const [showsCode, setShowsCode] = useState(false);
  const speed = answer?.tokens === undefined || answer.totalMs === undefined ? undefined : answer.tokens / (answer.totalMs / 1_000);
  return (
    <Card title={model} actions={<Button look="plain" onClick={() => setShowsCode(!showsCode)}>{showsCode ? "Answer" : "Code"}</Button>}>
      {showsCode ? <Code text={codeOf(model, messages)} /> : (
        <div className={own["answer"]} aria-live="polite">
          {answer?.problem === undefined ? answer?.text ?? "No answer yet." : <Problem error={new Error(answer.problem)} />}
        </div>
      )}
      {answer === undefined ? null : (
        <div className={own["meta"]}>
          {answer.model ?? model}{answer.providers === undefined ? "" : ` by ${answer.providers}`}<br />
          First token {duration(answer.firstTokenMs)}, total {duration(answer.totalMs)}, {count(answer.tokens)} tokens
          {speed === undefined ? "" : `, ${speed.toFixed(0)} tokens/s`}, {requestCost(answer.costUsd)}<br />
          {answer.generationId === undefined || answer.state !== "done" ? null : <Link to="/activity" search={{ id: answer.generationId }}>Open the record</Link>}
        </div>
      )}
    </Card>
  );
}

/** Asks one to four models the same thing, side by side, with time, speed, route and cost of each. */
export function PlaygroundPage() {
  const { model: first } = route.useSearch();
  const { data: session } = useSession();
  const { data: catalog } = useQuery(modelsQuery);
  const [models, setModels] = useState<readonly string[]>([first ?? ""]);
  const [system, setSystem] = useState("");
  const [prompt, setPrompt] = useState("");
  const [answers, setAnswers] = useState<Readonly<Record<number, Answer>>>({});
  const [asked, setAsked] = useState<readonly Message[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);
  const ids = catalog?.data.filter(({ capabilities }) => capabilities.includes("chat")).map(({ id }) => id) ?? [];
  const suggested = ids.find((id) => id.endsWith(":free")) ?? ids[0] ?? "";
  const isBusy = Object.values(answers).some(({ state }) => state === "waiting" || state === "streaming");
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (session === undefined) return;
    const controller = new AbortController();
    running.current = controller;
    const messages = messagesOf(system, prompt);
    setProblem(null);
    setAsked(messages);
    setAnswers({});
    try {
      await withPlaygroundKey(session.workspace.id, (secret) => Promise.all(
        models.map((model, column) => askModel({ model: model || suggested, messages }, {
          secret, signal: controller.signal, onAnswer: (answer) => setAnswers((before) => ({ ...before, [column]: answer })),
        })),
      ));
    } catch (error) {
      setProblem(error);
    }
  };
  const choose = (column: number, model: string): void => setModels(models.map((before, index) => (index === column ? model : before)));
  return (
    <>
      <PageHead title="Playground" />
      <Card>
        <form className={own["form"]} onSubmit={(event) => void submit(event)}>
          <datalist id="models">{ids.slice(0, 2_000).map((id) => <option key={id} value={id} />)}</datalist>
          <div className={own["models"]}>
            {models.map((model, column) => (
              <Field key={column} label={models.length === 1 ? "Model" : `Model ${column + 1}`}>
                {(id) => <Input id={id} list="models" value={model} placeholder={suggested} onChange={(event) => choose(column, event.target.value)} />}
              </Field>
            ))}
          </div>
          <Field label="System prompt">{(id) => <Input id={id} value={system} onChange={(event) => setSystem(event.target.value)} />}</Field>
          <Field label="Message">
            {(id) => <textarea id={id} className={style["input"]} value={prompt} onChange={(event) => setPrompt(event.target.value)} required
              onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit(); }} />}
          </Field>
          <Actions>
            <Button type="submit" disabled={isBusy}>Send</Button>
            {isBusy ? <Button look="plain" onClick={() => running.current?.abort()}>Stop</Button> : null}
            {models.length < columnsMax ? <Button look="plain" onClick={() => setModels([...models, ""])}>Compare with another model</Button> : null}
            {models.length > 1 ? <Button look="plain" onClick={() => setModels(models.slice(0, -1))}>Remove the last model</Button> : null}
          </Actions>
        </form>
      </Card>
      {problem === null ? null : <Problem error={problem} />}
      <div className={own["answers"]}>
        {models.map((model, column) => <AnswerCard key={column} model={model || suggested} answer={answers[column]} messages={asked} />)}
      </div>
    </>
  );
}
