import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { copyText } from "../../lib/clipboard.ts";
import { requestCost } from "../../lib/format.ts";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/fields.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { reachableQuery } from "../models/api.ts";
import { conversationsQuery, keepsQuery } from "./api.ts";
import { Columns } from "./columns.tsx";
import { Composer } from "./composer.tsx";
import { type Turn, useConversation } from "./conversation.ts";
import {
  type Attachment,
  type Column,
  type MediaKind,
  columnOf,
  fragmentOf,
  sharedOf,
} from "./draft.ts";
import { suggestedOf, useModelChoices } from "./model-choices.ts";
import own from "./playground.module.css";
import { TurnShown } from "./turn.tsx";

const route = getRouteApi("/playground");

/** Copies a link that opens the playground with the same columns and message. */
function ShareButton({ fragment }: { fragment: () => string }) {
  const [word, setWord] = useState<string>();
  const share = async (): Promise<void> => {
    // In the address as well, so that a reload and a bookmark have it where the browser does not copy.
    history.replaceState(history.state, "", location.pathname + location.search + fragment());
    setWord((await copyText(location.href)) ? "Link copied" : "Link is in the address");
  };
  return (
    <Button look="plain" onClick={() => void share()}>
      {word ?? "Share as link"}
    </Button>
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
          ["", "Open a conversation"],
          ...kept.map(({ id, title }) => [id, title] as const),
        ]}
      />
    </div>
  );
}

const beginnings = [
  "Explain how prompt caching saves money, in three sentences.",
  "Write a function in TypeScript that retries a request with a growing delay.",
  "Make a table of five HTTP status codes that mean a request may be sent again.",
];

/** What an empty room shows: whom it asks, and questions to begin with. */
function Beginning({ onChoose }: { onChoose: (text: string) => void }) {
  return (
    <div className={own["beginning"]}>
      <p>Ask a model, or up to four side by side. Route, time and cost stand under each answer.</p>
      {beginnings.map((text) => (
        <Button key={text} look="plain" onClick={() => onChoose(text)}>
          {text}
        </Button>
      ))}
    </div>
  );
}

/** Keeps the end of what is said in sight, unless the person has scrolled up to read. */
function useStickToEnd(turns: readonly Turn[]): void {
  const follows = useRef(true);
  useEffect(() => {
    const look = (): void => {
      const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
      follows.current = scrollHeight - scrollTop - clientHeight < 120;
    };
    document.addEventListener("scroll", look, { passive: true });
    return () => document.removeEventListener("scroll", look);
  }, []);
  const count = turns.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new message is always followed.
  useEffect(() => {
    follows.current = true;
  }, [count]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls with what is said.
  useEffect(() => {
    if (follows.current && count > 0)
      document.documentElement.scrollTop = document.documentElement.scrollHeight;
  }, [turns, count]);
}

/** What all columns make; undefined where one of them chats, or they make different things. */
function sharedKind(
  columns: readonly Column[],
  kinds: ReadonlyMap<string, MediaKind>,
): MediaKind | undefined {
  const [first, ...others] = columns.map(({ model }) => kinds.get(model));
  return others.every((each) => each === first) ? first : undefined;
}

const costOf = (turns: readonly Turn[]): number =>
  turns
    .flatMap(({ answers }) => Object.values(answers))
    .reduce((sum, { costUsd = 0 }) => sum + costUsd, 0);

/** The columns and the message, as the address began them. */
function useDraft() {
  const { model } = route.useSearch();
  const [shared] = useState(() => sharedOf(location.hash));
  const [columns, setColumns] = useState<readonly Column[]>(
    () => shared?.columns ?? [columnOf(model === undefined ? {} : { model })],
  );
  const [prompt, setPrompt] = useState(shared?.prompt ?? "");
  return { columns, setColumns, prompt, setPrompt, said: shared?.said };
}

/** A room to talk with models in, alone or side by side. */
export function PlaygroundPage() {
  const { data: session } = useSession();
  const mayWritePresets = useScope("write:presets");
  const { groups, suggested, kinds, hearing } = useModelChoices();
  const queries = useQueryClient();
  const { data: keeping } = useQuery(keepsQuery);
  const { columns, setColumns, prompt, setPrompt, said } = useDraft();
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  const conversation = useConversation();
  const { turns, isBusy, stop } = conversation;
  useStickToEnd(turns);
  // biome-ignore lint/correctness/useExhaustiveDependencies: begins once, and ends what is under way with the page.
  useEffect(() => {
    const [first] = columns;
    if (said !== undefined && said.length > 0 && first !== undefined)
      conversation.continueFrom(said, first);
    return stop;
  }, []);
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    setProblem(null);
    await work().catch(setProblem);
  };
  const ask = (
    text: string,
    files: readonly Attachment[],
    { parentId, onAsked }: { parentId: number | undefined; onAsked?: () => void },
  ): void =>
    void attempt(async () => {
      if (session === undefined) return;
      // A question that is typed before the models have come waits for them.
      const catalog = await queries.ensureQueryData(reachableQuery);
      const fallback = suggested || suggestedOf(catalog.data);
      await conversation.ask({
        workspaceId: session.workspace.id,
        columns: columns.map((column) => ({ ...column, model: column.model || fallback })),
        ...{ prompt: text, attachments: files, parentId, onAsked, keeps: keeping?.keep ?? false },
        kinds,
      });
    });
  const openKept = (id: string): void =>
    void attempt(async () => {
      const column = columns[0] ?? columnOf();
      setColumns([{ ...column, model: await conversation.open(id, column.id) }]);
    });
  const emptied = (): void => {
    setPrompt("");
    setAttachments([]);
  };
  const cost = costOf(turns);
  return (
    <>
      <PageHead title="Playground">
        {cost > 0 ? <span className={own["sum"]}>{requestCost(cost)} so far</span> : null}
        {keeping?.keep ? <KeptConversations onOpen={openKept} /> : null}
        <ShareButton fragment={() => fragmentOf({ columns, prompt })} />
        {turns.length > 0 ? (
          <Button look="plain" onClick={() => conversation.begin()}>
            New conversation
          </Button>
        ) : null}
      </PageHead>
      <Columns {...{ columns, groups, suggested, kinds, mayWritePresets }} onChange={setColumns} />
      <div className={own["room"]}>
        {turns.length === 0 ? <Beginning onChoose={setPrompt} /> : null}
        {turns.map((turn, index) => (
          <TurnShown
            key={turn.id}
            turn={turn}
            number={index + 1}
            versions={conversation.versionsOf(turn)}
            onShow={conversation.show}
            onAsk={
              isBusy
                ? undefined
                : (text) => ask(text, turn.attachments, { parentId: turn.parentId })
            }
            onAttach={(picture) => setAttachments([...attachments, picture])}
          />
        ))}
        {problem === null ? null : <Problem error={problem} />}
        {conversation.keepProblem === null ? null : <Problem error={conversation.keepProblem} />}
      </div>
      <Composer
        {...{ prompt, attachments, isBusy }}
        kind={sharedKind(columns, kinds)}
        hears={columns.some(({ model }) => hearing.has(model))}
        onPrompt={setPrompt}
        onAttachments={setAttachments}
        mayAsk={suggested !== "" || columns.every(({ model }) => model !== "")}
        onSend={() => ask(prompt, attachments, { parentId: turns.at(-1)?.id, onAsked: emptied })}
        onStop={stop}
      />
    </>
  );
}
