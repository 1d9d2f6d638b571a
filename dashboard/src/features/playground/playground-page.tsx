import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, Suspense, lazy, useEffect, useState } from "react";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Actions, Button, Card, Field, Input, Problem, Select, Skeleton } from "../../ui/parts.tsx";
import style from "../../ui/ui.module.css";
import { type Model, reachableQuery } from "../models/api.ts";
import { type UsageRow, usageQuery } from "../usage/api.ts";
import { AnswerCard, ShareButton } from "./answer-card.tsx";
import { conversationsQuery, keepsQuery, presetsQuery } from "./api.ts";
import { Attachments } from "./attachments.tsx";
import { type Turn, useConversation } from "./conversation.ts";
import { type Attachment, type Draft, emptyDraft, fragmentOf, sharedOf } from "./draft.ts";
import own from "./playground.module.css";
import { SettingsForm } from "./settings-form.tsx";

const route = getRouteApi("/playground");
// Loaded with the first comparison: most answers are read alone.
const Differences = lazy(async () => ({
  default: (await import("./differences.tsx")).Differences,
}));
const columnsMax = 4;
const idsMax = 2_000;

/**
 * The ids of models that chat: those that the workspace used most in the last days first, then
 * those that cost nothing, then the newest.
 */
export function chatIdsOf(models: readonly Model[], used: readonly UsageRow[] = []): string[] {
  const requests = new Map<string, number>();
  for (const { model = "", requests: count } of used)
    requests.set(model, count + (requests.get(model) ?? 0));
  const weightOf = ({ id, created = 0 }: Model): readonly number[] => [
    requests.get(id) ?? 0,
    id.endsWith(":free") ? 1 : 0,
    created,
  ];
  return models
    .filter(({ capabilities }) => capabilities.includes("chat"))
    .map((model) => ({ id: model.id, weight: weightOf(model) }))
    .toSorted((one, other) => {
      const at = one.weight.findIndex((weight, index) => weight !== other.weight[index]);
      return at < 0 ? 0 : (other.weight[at] ?? 0) - (one.weight[at] ?? 0);
    })
    .map(({ id }) => id);
}

/** Models that chat, and presets, by the names that requests have for them. */
function useModelNames(): { names: readonly string[]; suggested: string } {
  const { data: catalog } = useQuery(reachableQuery);
  const mayReadPresets = useScope("read:presets");
  const { data: presets } = useQuery({ ...presetsQuery, enabled: mayReadPresets });
  const mayReadUsage = useScope("read:analytics");
  const { data: usage } = useQuery({
    ...usageQuery({ range: { range: "14d" }, group: "model" }),
    enabled: mayReadUsage,
  });
  const ids = chatIdsOf(catalog?.data ?? [], usage?.data);
  return {
    names: [...(presets?.data ?? []).map(({ slug }) => `@preset/${slug}`), ...ids.slice(0, idsMax)],
    suggested: ids[0] ?? "",
  };
}

function ModelFields({
  draft,
  suggested,
  names,
  onChange,
}: {
  draft: Draft;
  suggested: string;
  names: readonly string[];
  onChange: (models: readonly string[]) => void;
}) {
  const { models } = draft;
  const choose = (column: number, model: string): void =>
    onChange(models.map((before, index) => (index === column ? model : before)));
  return (
    <div className={own["models"]}>
      <datalist id="models">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {models.map((model, column) => (
        <Field key={column} label={models.length === 1 ? "Model" : `Model ${column + 1}`}>
          {(id) => (
            <Input
              id={id}
              list="models"
              value={model}
              placeholder={suggested}
              onChange={(event) => choose(column, event.target.value)}
            />
          )}
        </Field>
      ))}
    </div>
  );
}

/** Shows the words in which answers of a turn differ, once two of them are there. */
function TurnDifferences({ turn: { models, answers } }: { turn: Turn }) {
  const [isShown, setShown] = useState(false);
  const columns = models.flatMap((model, column) => {
    const answer = answers[column];
    const isThere =
      answer !== undefined &&
      answer.text !== "" &&
      (answer.state === "done" || answer.state === "stopped");
    return isThere ? [{ model, answer }] : [];
  });
  if (columns.length < 2) return null;
  return (
    <>
      <Actions>
        <Button look="plain" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide the difference" : "Show the difference"}
        </Button>
      </Actions>
      {isShown ? (
        <Suspense fallback={<Skeleton height={160} />}>
          <Differences columns={columns} />
        </Suspense>
      ) : null}
    </>
  );
}

function KeptConversations({ onOpen }: { onOpen: (id: string) => void }) {
  const { data } = useQuery(conversationsQuery);
  const kept = data?.data ?? [];
  if (kept.length === 0) return null;
  return (
    <div className={own["kept"]}>
      <Select
        label="Kept conversations"
        value=""
        onChange={(id) => {
          if (id !== "") onOpen(id);
        }}
        options={[
          ["", "Go on with a conversation"],
          ...kept.map(({ id, title }) => [id, title] as const),
        ]}
      />
    </div>
  );
}

/**
 * Asks one to four models the same thing, side by side, with time, speed, route and cost of each.
 */
export function PlaygroundPage() {
  const { model: first } = route.useSearch();
  const { data: session } = useSession();
  const { names, suggested } = useModelNames();
  const queries = useQueryClient();
  const { data: keeping } = useQuery(keepsQuery);
  const [shared] = useState(() => sharedOf(location.hash));
  const [draft, setDraft] = useState<Draft>(
    shared?.draft ?? { ...emptyDraft, models: [first ?? ""] },
  );
  const [prompt, setPrompt] = useState(shared?.prompt ?? "");
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  const conversation = useConversation();
  const { turns, isBusy, stop } = conversation;
  // Leaving the page ends what is under way, and its cost.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, when the page is left.
  useEffect(() => stop, []);
  const change = (changes: Partial<Draft>): void =>
    setDraft((before) => ({ ...before, ...changes }));
  const models = draft.models.map((model) => model || suggested);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setProblem(null);
    await work().catch(setProblem);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (session === undefined || isBusy) return;
    const keeps = keeping?.keep ?? false;
    void attempt(async () => {
      // A question that is typed before the models have come waits for them.
      const catalog = await queries.ensureQueryData(reachableQuery);
      const fallback = suggested || (chatIdsOf(catalog.data)[0] ?? "");
      const asking = conversation.ask({
        workspaceId: session.workspace.id,
        draft,
        models: draft.models.map((model) => model || fallback),
        prompt,
        attachments,
        keeps,
      });
      setAttachments([]);
      await asking;
    });
  };
  return (
    <>
      <PageHead title="Playground">
        {keeping?.keep ? (
          <KeptConversations
            onOpen={(id) =>
              void attempt(async () => change({ models: [await conversation.open(id)] }))
            }
          />
        ) : null}
      </PageHead>
      <Card>
        <form className={own["form"]} onSubmit={submit}>
          <ModelFields
            draft={draft}
            suggested={suggested}
            names={names}
            onChange={(next) => change({ models: next })}
          />
          <Field label="System prompt">
            {(id) => (
              <Input
                id={id}
                value={draft.system}
                onChange={(event) => change({ system: event.target.value })}
              />
            )}
          </Field>
          <Field label="Message">
            {(id) => (
              <textarea
                id={id}
                className={style["input"]}
                value={prompt}
                onChange={(event) => setPrompt(event.target.value)}
                required
                onKeyDown={(event) => {
                  if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
                    event.currentTarget.form?.requestSubmit();
                }}
              />
            )}
          </Field>
          <Attachments files={attachments} onChange={setAttachments} />
          <SettingsForm draft={draft} onChange={change} />
          <Actions>
            <Button type="submit" disabled={isBusy || suggested === ""}>
              Send
            </Button>
            {isBusy ? (
              <Button look="plain" onClick={stop}>
                Stop
              </Button>
            ) : null}
            {models.length < columnsMax ? (
              <Button look="plain" onClick={() => change({ models: [...draft.models, ""] })}>
                Compare with another model
              </Button>
            ) : null}
            {models.length > 1 ? (
              <Button look="plain" onClick={() => change({ models: draft.models.slice(0, -1) })}>
                Remove the last model
              </Button>
            ) : null}
            <ShareButton fragment={() => fragmentOf({ draft, prompt })} />
            {turns.length > 0 ? (
              <Button look="plain" onClick={() => conversation.begin()}>
                New conversation
              </Button>
            ) : null}
          </Actions>
        </form>
      </Card>
      {problem === null ? null : <Problem error={problem} />}
      {conversation.keepProblem === null ? null : <Problem error={conversation.keepProblem} />}
      {turns.length === 0 ? (
        <div className={own["answers"]}>
          {models.map((model, column) => (
            <AnswerCard key={column} model={model} answer={undefined} body={undefined} />
          ))}
        </div>
      ) : null}
      {turns.toReversed().map((turn, index) => (
        <section
          key={turns.length - index}
          aria-label={`Turn ${turns.length - index}`}
          className={own["form"]}
        >
          <p className={own["question"]}>{turn.text}</p>
          <div className={own["answers"]}>
            {turn.models.map((model, column) => (
              <AnswerCard
                key={column}
                model={model}
                answer={turn.answers[column]}
                body={turn.bodies[column]}
              />
            ))}
          </div>
          <TurnDifferences turn={turn} />
        </section>
      ))}
    </>
  );
}
