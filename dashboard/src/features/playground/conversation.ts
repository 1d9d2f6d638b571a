import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { type NewMessage, keepMessages, openConversation } from "./api.ts";
import {
  type Attachment,
  type ChatBody,
  type Column,
  type MediaKind,
  type Message,
  bodyOf,
  userMessage,
} from "./draft.ts";
import { type Answer, type AskOptions, askModel, noAnswer } from "./stream.ts";

/** What one column was asked: the model, and the request where it was sent from this page. */
interface Asked {
  columnId: number;
  model: string;
  body?: ChatBody;
}

/**
 * What was asked once, and what each column answered. A message that is edited, or asked again, is
 * another turn after the same one.
 */
export interface Turn {
  id: number;
  parentId: number | undefined;
  text: string;
  attachments: readonly Attachment[];
  message: Message;
  asked: readonly Asked[];
  /** By the id of the column. */
  answers: Readonly<Record<number, Answer>>;
}

/** The turns that lead to one, the first one first. */
function pathTo(turns: readonly Turn[], id: number | undefined): Turn[] {
  const turn = turns.find((each) => each.id === id);
  return turn === undefined ? [] : [...pathTo(turns, turn.parentId), turn];
}

/** The last turn of the newest way on from one. */
function leafOf(turns: readonly Turn[], id: number): number {
  const next = turns.findLast(({ parentId }) => parentId === id);
  return next === undefined ? id : leafOf(turns, next.id);
}

/** What a column has said and heard; turns in which it was silent are left out. */
const historyOf = (path: readonly Turn[], columnId: number): Message[] =>
  path.flatMap(({ message, answers }): Message[] => {
    const text = answers[columnId]?.text ?? "";
    return text === "" ? [] : [message, { role: "assistant", content: text }];
  });

/** The same as it is kept. */
const keptOf = (path: readonly Turn[], columnId: number): NewMessage[] =>
  path.flatMap(({ text, attachments, asked, answers }): NewMessage[] => {
    const answer = answers[columnId]?.text ?? "";
    const model = asked.find((each) => each.columnId === columnId)?.model;
    return answer === ""
      ? []
      : [
          { role: "user", content: text || attachments.map(({ name }) => name).join(", ") },
          { role: "assistant", content: answer, ...(model === undefined ? {} : { model }) },
        ];
  });

/** A message to the columns. */
interface Asking {
  workspaceId: string;
  columns: readonly Column[];
  /** What the models make that do not chat, by their ids. */
  kinds: ReadonlyMap<string, MediaKind>;
  prompt: string;
  attachments: readonly Attachment[];
  /** Whether the workspace keeps conversations. */
  keeps: boolean;
  /** The turn that the message follows; undefined for the first message of a conversation. */
  parentId: number | undefined;
  /** Called once the message is on its way; not where a column makes no request. */
  onAsked?: (() => void) | undefined;
}

/** The request of a column, with a way to send it. Throws where the column makes none. */
async function requestOf(column: Column, asking: Asking, path: readonly Turn[]) {
  const kind = asking.kinds.get(column.model);
  const asked = { columnId: column.id, model: column.model };
  if (kind === undefined) {
    const message = userMessage(asking.prompt, asking.attachments);
    const body = bodyOf(column, [...historyOf(path, column.id), message]);
    return {
      asked: { ...asked, body },
      send: (options: AskOptions) => askModel(body, options),
    };
  }
  // Loaded with the first picture or sound: most conversations are of text.
  const { askMedia, mediaRequestOf } = await import("./media/ask-media.ts");
  const request = mediaRequestOf(kind, column, asking);
  return { asked, send: (options: AskOptions) => askMedia(request, options) };
}

let turnsMade = 0;
const nextId = (): number => (turnsMade += 1);

/** Turns of which questions and answers are known as texts. */
function turnsOf(
  said: readonly { question: string; answer: string | undefined; model: string }[],
  columnId: number,
): Turn[] {
  let parentId: number | undefined;
  return said.map(({ question, answer, model }) => {
    const turn: Turn = {
      id: nextId(),
      parentId,
      text: question,
      attachments: [],
      message: { role: "user", content: question },
      asked: [{ columnId, model }],
      answers:
        answer === undefined ? {} : { [columnId]: { ...noAnswer, text: answer, state: "done" } },
    };
    parentId = turn.id;
    return turn;
  });
}

/** Shows at most one state of each answer in a frame, however fast its pieces come. */
function useFrames(show: (states: readonly (readonly [string, Answer])[]) => void) {
  const waiting = useRef(new Map<string, Answer>());
  const flush = (): void => {
    const states = [...waiting.current];
    waiting.current.clear();
    if (states.length > 0) show(states);
  };
  return (name: string, answer: Answer): void => {
    const isLast = answer.state !== "streaming";
    if (waiting.current.size === 0 && !isLast) requestAnimationFrame(flush);
    waiting.current.set(name, answer);
    if (isLast) flush();
  };
}

/** Keeps conversations in the workspace, one for each column and way. */
function useKeeping() {
  const queries = useQueryClient();
  const kept = useRef<Record<number, { id: string; turnId: number | undefined }>>({});
  const [problem, setProblem] = useState<unknown>(null);
  const keep = async (columnId: number, path: readonly Turn[], turn: Turn): Promise<void> => {
    const before = kept.current[columnId];
    const follows = before !== undefined && before.turnId === turn.parentId;
    const messages = follows ? keptOf([turn], columnId) : keptOf([...path, turn], columnId);
    if (keptOf([turn], columnId).length === 0) return;
    try {
      const id = await keepMessages(follows ? before.id : undefined, messages);
      kept.current[columnId] = { id, turnId: turn.id };
      await queries.invalidateQueries({ queryKey: ["conversations"] });
    } catch (error) {
      setProblem(error);
    }
  };
  const begin = (next: typeof kept.current = {}): void => {
    kept.current = next;
    setProblem(null);
  };
  return { keep, begin, problem };
}

/**
 * The conversation of the page: asks its columns, stops them, goes back to change what was asked,
 * and keeps what the workspace lets it keep.
 */
export function useConversation() {
  const [all, setAll] = useState<readonly Turn[]>([]);
  const [leaf, setLeaf] = useState<number>();
  const running = useRef<AbortController>(null);
  const keeping = useKeeping();
  const turns = pathTo(all, leaf);
  const isBusy = all.some(({ answers }) =>
    Object.values(answers).some(({ state }) => state === "waiting" || state === "streaming"),
  );
  const onFrame = useFrames((states) =>
    setAll((before) =>
      before.map((turn) => {
        const own = states.filter(([name]) => name.startsWith(`${turn.id} `));
        const answers = own.map(([name, answer]) => [name.split(" ")[1], answer] as const);
        return own.length === 0
          ? turn
          : { ...turn, answers: { ...turn.answers, ...Object.fromEntries(answers) } };
      }),
    ),
  );
  /** Throws where a column makes no request. */
  const ask = async (asking: Asking): Promise<void> => {
    const { workspaceId, columns, prompt, attachments, keeps, parentId } = asking;
    const message = userMessage(prompt, attachments);
    const path = pathTo(all, parentId);
    const requests = await Promise.all(columns.map((column) => requestOf(column, asking, path)));
    const asked = requests.map((each) => each.asked);
    const controller = new AbortController();
    running.current = controller;
    const turn: Turn = {
      ...{ id: nextId(), parentId, text: prompt, attachments, message, asked },
      answers: {},
    };
    setAll((before) => [...before, turn]);
    setLeaf(turn.id);
    asking.onAsked?.();
    await Promise.all(
      requests.map(async ({ asked: { columnId }, send }) => {
        const answer = await send({
          workspaceId,
          signal: controller.signal,
          onAnswer: (state) => onFrame(`${turn.id} ${columnId}`, state),
        });
        if (keeps) await keeping.keep(columnId, path, { ...turn, answers: { [columnId]: answer } });
      }),
    );
  };
  const begin = (next: readonly Turn[] = []): void => {
    running.current?.abort();
    keeping.begin();
    setAll(next);
    setLeaf(next.at(-1)?.id);
  };
  /** Goes on with a conversation that was kept; gives the model that it was with. */
  const open = async (id: string, columnId: number): Promise<string> => {
    const { messages, model } = await openConversation(id);
    const asked = messages.flatMap(({ role, content }, index) =>
      role === "user" ? [{ content, answer: messages[index + 1] }] : [],
    );
    const name = model ?? asked.at(-1)?.answer?.model ?? "";
    const next = turnsOf(
      asked.map(({ content, answer }) => ({
        question: content,
        answer: answer?.role === "assistant" ? answer.content : undefined,
        model: answer?.model ?? name,
      })),
      columnId,
    );
    begin(next);
    keeping.begin({ [columnId]: { id, turnId: next.at(-1)?.id } });
    return name;
  };
  return {
    turns,
    isBusy,
    keepProblem: keeping.problem,
    ask,
    begin,
    open,
    /** Begins with what was said elsewhere. */
    continueFrom: (said: readonly (readonly [string, string])[], column: Column) =>
      begin(
        turnsOf(
          said.map(([question, answer]) => ({ question, answer, model: column.model })),
          column.id,
        ),
      ),
    /** The other turns after the same one, this one included, in the order in which they were asked. */
    versionsOf: (turn: Turn) => all.filter(({ parentId }) => parentId === turn.parentId),
    show: (id: number) => setLeaf(leafOf(all, id)),
    stop: () => running.current?.abort(),
  };
}
