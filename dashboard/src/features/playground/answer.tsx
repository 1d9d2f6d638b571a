import { Link } from "@tanstack/react-router";
import { Suspense, lazy, useState } from "react";
import { count, duration, requestCost } from "../../lib/format.ts";
import { Markdown } from "../../ui/markdown.tsx";
import { Button } from "../../ui/button.tsx";
import { Code, CopyButton } from "../../ui/copy.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { useProviderNames } from "../provider-keys/provider-names.tsx";
import type { Attachment, ChatBody } from "./draft.ts";
import own from "./playground.module.css";
import type { Answer } from "./stream.ts";

// Loaded with the first use: most answers are only read.
const CodeExport = lazy(async () => ({
  default: (await import("./code-export.tsx")).CodeExport,
}));

const isUnderWay = ({ state }: Answer): boolean => state === "waiting" || state === "streaming";

/** Where the time, the tokens and the money of an answer went: one line. */
function Figures({ answer }: { answer: Answer }) {
  const { firstTokenMs, totalMs, tokens, providers } = answer;
  const nameOf = useProviderNames();
  const speed =
    tokens === undefined || firstTokenMs === undefined || !totalMs
      ? undefined
      : tokens / (totalMs / 1_000);
  const rows = [
    ["Route", providers ? `by ${providers.split("->").map(nameOf).join(", then ")}` : undefined],
    ["First token", firstTokenMs === undefined ? undefined : duration(firstTokenMs)],
    ["Total", totalMs === undefined ? undefined : duration(totalMs)],
    [
      "Tokens",
      tokens === undefined
        ? undefined
        : `${count(tokens)}${speed === undefined ? "" : ` (${speed.toFixed(0)} a second)`}`,
    ],
    ["Cost", answer.costUsd === undefined ? undefined : requestCost(answer.costUsd)],
  ] as const;
  return (
    <dl className={own["figures"]}>
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** What the model thought, folded. */
function Thinking({ answer }: { answer: Answer }) {
  const { reasoning, thoughtMs } = answer;
  if (reasoning === "") return null;
  const isThinking = answer.text === "" && isUnderWay(answer);
  return (
    <details className={own["thinking"]}>
      <summary>
        {isThinking
          ? "Thinking"
          : thoughtMs === undefined
            ? "Thought"
            : `Thought for ${duration(thoughtMs)}`}
      </summary>
      <Markdown text={reasoning} />
    </details>
  );
}

/** The ending of a file's name, by the type that its data URL begins with. */
const endingOf = (url: string): string =>
  (/^data:\w+\/([\w.-]+)/.exec(url)?.[1] ?? "bin").replace("mpeg", "mp3").replace("jpeg", "jpg");

/** A picture that a model made, with what can be done with it. */
function Picture({
  url,
  label,
  onAttach,
}: {
  url: string;
  label: string;
  onAttach: (picture: Attachment) => void;
}) {
  const name = `picture.${endingOf(url)}`;
  const type = /^data:([\w/.+-]+)/.exec(url)?.[1] ?? "image/png";
  return (
    <figure className={own["picture"]}>
      <img src={url} alt={label} />
      <figcaption className={own["acts"]}>
        <a href={url} download={name}>
          Download
        </a>
        <Button look="plain" onClick={() => onAttach({ name, type, url })}>
          Change this picture
        </Button>
      </figcaption>
    </figure>
  );
}

/** A sound that a model made. */
const Sound = ({ url, label }: { url: string; label: string }) => (
  <div className={own["sound"]}>
    {/* biome-ignore lint/a11y/useMediaCaption: its label has the words that are spoken. */}
    <audio src={url} controls aria-label={label} />
    <div className={own["acts"]}>
      <a href={url} download={`speech.${endingOf(url)}`}>
        Download
      </a>
    </div>
  </div>
);

function Said({
  answer,
  prompt,
  onAttach,
}: {
  answer: Answer;
  prompt: string;
  onAttach: (picture: Attachment) => void;
}) {
  const { text, reasoning, calls, pictures, sounds, state } = answer;
  const parts = [text, reasoning, ...calls, ...pictures, ...sounds];
  const isSilent = parts.every((part) => part === "");
  return (
    <div className={own["answer"]} aria-live="polite" aria-busy={isUnderWay(answer)}>
      <Thinking answer={answer} />
      {isSilent && state === "waiting" ? (
        <span className={own["waiting"]}>Waiting for the answer</span>
      ) : null}
      {text === "" ? null : <Markdown text={text} />}
      {pictures.map((url, index) => (
        <Picture
          key={index}
          url={url}
          label={`Picture ${index + 1} of ${pictures.length}: ${prompt}`}
          onAttach={onAttach}
        />
      ))}
      {sounds.map((url, index) => (
        <Sound key={index} url={url} label={`Speech: ${prompt}`} />
      ))}
      {calls.map((call, index) => (
        <Code key={index} text={`${call.name}(${call.arguments})`} />
      ))}
    </div>
  );
}

/** One model's answer, with what it took and what can be done with it. */
export function AnswerShown({
  model,
  number,
  answer,
  body,
  prompt,
  onAttach,
  onRetry,
}: {
  model: string;
  /** The number of the turn, counted from 1. */
  number: number;
  answer: Answer | undefined;
  body: ChatBody | undefined;
  /** What was asked, which describes pictures and sounds to those who do not see or hear them. */
  prompt: string;
  onAttach: (picture: Attachment) => void;
  /** Absent while something is under way. */
  onRetry: (() => void) | undefined;
}) {
  const [showsCode, setShowsCode] = useState(false);
  if (answer === undefined) return null;
  const served = answer.model ?? model;
  return (
    <section
      className={own["said"]}
      aria-label={number === 1 ? model : `${model}, answer ${number}`}
    >
      <h2>{served === model ? model : `${model}, served by ${served}`}</h2>
      <Said answer={answer} prompt={prompt} onAttach={onAttach} />
      {answer.problem === undefined ? null : (
        <Problem error={answer.refusal ?? new Error(answer.problem)} traceId={answer.traceId} />
      )}
      {answer.state === "stopped" ? <Status kind="warning">stopped</Status> : null}
      <Figures answer={answer} />
      {isUnderWay(answer) ? null : (
        <div className={own["acts"]}>
          {answer.text === "" ? null : <CopyButton text={answer.text} />}
          {onRetry === undefined ? null : (
            <Button look="plain" onClick={onRetry}>
              Ask again
            </Button>
          )}
          {body === undefined ? null : (
            <Button look="plain" onClick={() => setShowsCode(true)}>
              Code
            </Button>
          )}
          {answer.generationId === undefined ? null : (
            <Link to="/activity" search={{ id: answer.generationId }}>
              Open the record
            </Link>
          )}
        </div>
      )}
      {body !== undefined && showsCode ? (
        <Suspense fallback={null}>
          <CodeExport body={body} onClose={() => setShowsCode(false)} />
        </Suspense>
      ) : null}
    </section>
  );
}
