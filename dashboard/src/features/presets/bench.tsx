import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useSession } from "../../lib/session.ts";
import { send, sendingAsWritten } from "../../lib/api.ts";
import { count, duration, requestCost } from "../../lib/format.ts";
import { withPlaygroundKey } from "../../lib/playground-key.ts";
import { Button, Card, Field, Problem } from "../../ui/parts.tsx";
import { Form, TextArea } from "../../ui/form.tsx";
import style from "../../ui/ui.module.css";
import type { PresetConfig } from "./api.ts";
import { withoutNulls } from "./preset-fields.ts";

interface Answer {
  text: string;
  model: string;
  milliseconds: number;
  tokens: number | undefined;
  costUsd: number | undefined;
  id: string;
}

interface Completion {
  id: string;
  model: string;
  choices: readonly { message: { content: string | null } }[];
  usage?: { completion_tokens?: number; cost?: number };
}

async function ask(workspaceId: string, body: Record<string, unknown>): Promise<Answer> {
  const startedMs = performance.now();
  const response = await withPlaygroundKey(workspaceId, (key) =>
    send("/chat/completions", { ...sendingAsWritten(body), key }),
  );
  const { id, model, choices, usage } = (await response.json()) as Completion;
  return {
    id,
    model,
    text: choices[0]?.message.content ?? "",
    milliseconds: performance.now() - startedMs,
    tokens: usage?.completion_tokens,
    costUsd: usage?.cost,
  };
}

/**
 * The preset's fields in the body itself, where what is in the editor differs from what is stored.
 */
const bodyOf = (config: PresetConfig, message: string): Record<string, unknown> => {
  const { system, ...fields } = withoutNulls(config);
  const messages = [{ role: "user", content: message }];
  return {
    ...fields,
    messages:
      typeof system === "string" ? [{ role: "system", content: system }, ...messages] : messages,
  };
};

function AnswerCard({
  title,
  work,
}: {
  title: string;
  work: { data: Answer | undefined; error: unknown; isPending: boolean };
}) {
  return (
    <Card title={title}>
      <div aria-live="polite">
        {work.isPending ? (
          "Waiting for the answer."
        ) : work.error ? (
          <Problem error={work.error} />
        ) : work.data === undefined ? (
          "No answer yet."
        ) : (
          <>
            <p>{work.data.text}</p>
            <p className={style.hint}>
              {work.data.model}, {duration(work.data.milliseconds)}, {count(work.data.tokens)}{" "}
              tokens, {requestCost(work.data.costUsd)}
            </p>
            <Link to="/activity" search={{ id: work.data.id }}>
              Open the record
            </Link>
          </>
        )}
      </div>
    </Card>
  );
}

/** Sends one message through the stored preset and through what is in the editor, side by side. */
export function Bench({ slug, draft }: { slug: string; draft: () => PresetConfig }) {
  const { data: session } = useSession();
  const [message, setMessage] = useState("");
  const workspaceId = session?.workspace.id ?? "";
  const stored = useMutation({
    mutationFn: () =>
      ask(workspaceId, {
        model: `@preset/${slug}`,
        messages: [{ role: "user", content: message }],
      }),
  });
  const edited = useMutation({
    mutationFn: async () => ask(workspaceId, bodyOf(draft(), message)),
  });
  const both = (): void => {
    stored.mutate();
    edited.mutate();
  };
  return (
    <>
      <Card title="Test bench">
        <Form
          action="Run preset"
          work={{ isPending: stored.isPending, error: null }}
          onSubmit={() => stored.mutate()}
          disabled={session === undefined}
          more={
            <Button look="plain" disabled={message === "" || edited.isPending} onClick={both}>
              Run preset and draft
            </Button>
          }
        >
          <Field
            label="Message"
            hint="Sent with your playground key; it costs what a request costs."
          >
            {(id) => (
              <TextArea
                id={id}
                value={message}
                required
                onChange={(event) => setMessage(event.target.value)}
              />
            )}
          </Field>
        </Form>
      </Card>
      <div className={style.grid}>
        <AnswerCard title="Stored preset" work={stored} />
        <AnswerCard title="Draft in the editor" work={edited} />
      </div>
    </>
  );
}
