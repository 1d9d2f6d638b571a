import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { useScope } from "../../lib/session.ts";
import { requestCost } from "../../lib/format.ts";
import { isTyping } from "../../lib/typing.ts";
import { Drawer } from "../../ui/overlay.tsx";
import { Button } from "../../ui/button.tsx";
import { Code, Id } from "../../ui/copy.tsx";
import { Loaded } from "../../ui/loaded.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { explanationQuery, type Explanation, type GenerationDetails } from "./api.ts";
import { GenerationStatus } from "./generations-table.tsx";
import { GenerationSummary } from "./generation-summary.tsx";
import { KeptContent, useKeepsContent } from "./kept-content.tsx";
import style from "./activity.module.css";

/**
 * Calls back on J with 1 and on K with -1, except while the person types or another dialog than
 * that of the open request is shown.
 */
export function useStepKeys(onStep: (by: number) => void, { isOpen }: { isOpen: boolean }): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelectorAll('[role="dialog"]').length > (isOpen ? 1 : 0)) return;
      const key = event.key.toLowerCase();
      if (key === "j") onStep(1);
      if (key === "k") onStep(-1);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [onStep, isOpen]);
}

/**
 * One request: what it cost and why, what was tried, and what is kept of it. A request of another
 * workspace is read elsewhere, and nothing of this workspace is changed for it.
 */
export function GenerationDrawer({
  id,
  onClose,
  onStep,
  read = explanationQuery,
  isOwn = true,
}: {
  id: string | undefined;
  onClose: () => void;
  onStep: (by: number) => void;
  read?: typeof explanationQuery;
  isOwn?: boolean;
}) {
  return (
    <Drawer
      title="Request"
      beside
      open={id !== undefined}
      onClose={onClose}
      head={
        <>
          <Button look="plain" aria-keyshortcuts="K" onClick={() => onStep(-1)}>
            Newer
          </Button>
          <Button look="plain" aria-keyshortcuts="J" onClick={() => onStep(1)}>
            Older
          </Button>
        </>
      }
    >
      {id === undefined ? null : <GenerationShown id={id} read={read} isOwn={isOwn} />}
    </Drawer>
  );
}

/** Records have nothing of what was sent, so the repeat has the request's settings and an empty message. */
function repeatsOf({
  requested_model: model,
  streamed: stream,
}: GenerationDetails): readonly (readonly [client: string, code: string])[] {
  const base = `${location.origin}/api/v1`;
  const body = JSON.stringify({ model, stream, messages: [{ role: "user", content: "" }] });
  const call = `model: ${JSON.stringify(model)}, stream: ${stream}, messages: [{ role: "user", content: "" }]`;
  const python = `model=${JSON.stringify(model)}, stream=${stream ? "True" : "False"}, messages=[{"role": "user", "content": ""}]`;
  return [
    [
      "curl",
      `curl ${base}/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n  -d '${body}'`,
    ],
    [
      "TypeScript",
      `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${base}", apiKey: process.env.SWITCHYARD_KEY });\nawait client.chat.completions.create({ ${call} });`,
    ],
    [
      "Python",
      `import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url="${base}", api_key=os.environ["SWITCHYARD_KEY"])\nclient.chat.completions.create(${python})`,
    ],
  ];
}

/** Ways to send the same request again. */
function Repeat({ generation, mayAsk }: { generation: GenerationDetails; mayAsk: boolean }) {
  return (
    <>
      {mayAsk ? (
        <p>
          <Link to="/playground" search={{ model: generation.requested_model }}>
            Open in the playground
          </Link>
        </p>
      ) : null}
      <p>The record keeps the model and the form of the answer. Add the messages.</p>
      {repeatsOf(generation).map(([client, code]) => (
        <section key={client} className={style.section}>
          <h2>{client}</h2>
          <Code text={code} label={`Copy ${client}`} />
        </section>
      ))}
    </>
  );
}

/** The head of a request: the model, what came of it, and what it cost. */
function GenerationHead({ explanation }: { explanation: Explanation }) {
  const { generation } = explanation;
  return (
    <div className={style.requestHead}>
      <div>
        <strong>{generation.model}</strong>
        <Id>{explanation.id}</Id>
      </div>
      <GenerationStatus status={generation.status} />
      <strong>{requestCost(explanation.charged_usd)}</strong>
    </div>
  );
}

function GenerationShown({
  id,
  read,
  isOwn,
}: {
  id: string;
  read: typeof explanationQuery;
  isOwn: boolean;
}) {
  const query = useQuery(read(id));
  const mayAsk = useScope("inference") && isOwn;
  const keepsContent = useKeepsContent() !== undefined && isOwn;
  return (
    <Loaded query={query} height={400}>
      {(explanation) => {
        const { generation } = explanation;
        return (
          <>
            <GenerationHead explanation={explanation} />
            <Tabs
              key={explanation.id}
              label="Parts of the request"
              tabs={[
                ["Summary", <GenerationSummary key="s" explanation={explanation} isOwn={isOwn} />],
                ...(keepsContent
                  ? [["Content", <KeptContent key="c" id={explanation.id} />] as const]
                  : []),
                ["JSON", <Code key="j" text={JSON.stringify(explanation, null, 2)} />],
                // Other surfaces have another path and other fields.
                ...(generation.api_type === "completions"
                  ? [["Repeat", <Repeat key="r" {...{ generation, mayAsk }} />] as const]
                  : []),
              ]}
            />
          </>
        );
      }}
    </Loaded>
  );
}
