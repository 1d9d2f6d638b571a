import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { keepMessages, openConversation } from "./api.ts";
import {
  type Attachment,
  type ChatBody,
  type Draft,
  type Message,
  bodyOf,
  userMessage,
} from "./draft.ts";
import { type Answer, askModel } from "./stream.ts";

/** What was asked once, and what each model answered. */
export interface Turn {
  text: string;
  message: Message;
  models: readonly string[];
  bodies: readonly ChatBody[];
  answers: Readonly<Record<number, Answer>>;
}

/**
 * What a model of a column has said and heard so far; turns in which it was silent are left out.
 */
const historyOf = (turns: readonly Turn[], column: number): Message[] =>
  turns.flatMap(({ message, answers }): Message[] => {
    const text = answers[column]?.text ?? "";
    return text === "" ? [] : [message, { role: "assistant", content: text }];
  });

interface Asking {
  workspaceId: string;
  draft: Draft;
  models: readonly string[];
  prompt: string;
  attachments: readonly Attachment[];
  /** Whether the workspace keeps conversations. */
  keeps: boolean;
}

/**
 * The conversation of the page: asks its models in turn, stops them, keeps what the workspace lets
 * it keep.
 */
export function useConversation() {
  const queries = useQueryClient();
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const running = useRef<AbortController>(null);
  const keptIds = useRef<Record<number, string>>({});
  const [keepProblem, setKeepProblem] = useState<unknown>(null);
  const last = turns.at(-1);
  const isBusy = Object.values(last?.answers ?? {}).some(
    ({ state }) => state === "waiting" || state === "streaming",
  );

  const keep = async (
    column: number,
    { text, model, answer }: { text: string; model: string; answer: Answer },
  ): Promise<void> => {
    if (answer.text === "") return;
    try {
      keptIds.current[column] = await keepMessages(keptIds.current[column], [
        { role: "user", content: text },
        { role: "assistant", content: answer.text, model },
      ]);
      await queries.invalidateQueries({ queryKey: ["conversations"] });
    } catch (error) {
      setKeepProblem(error);
    }
  };
  /** Throws where the draft makes no request. */
  const ask = async ({
    workspaceId,
    draft,
    models,
    prompt,
    attachments,
    keeps,
  }: Asking): Promise<void> => {
    const message = userMessage(prompt, attachments);
    const bodies = models.map((model, column) =>
      bodyOf(draft, model, [...historyOf(turns, column), message]),
    );
    const controller = new AbortController();
    running.current = controller;
    setTurns([...turns, { text: prompt, message, models, bodies, answers: {} }]);
    const onAnswer =
      (column: number) =>
      (answer: Answer): void =>
        setTurns((before) =>
          before.map((turn, index) =>
            index === before.length - 1
              ? { ...turn, answers: { ...turn.answers, [column]: answer } }
              : turn,
          ),
        );
    await Promise.all(
      bodies.map(async (body, column) => {
        const answer = await askModel(body, {
          workspaceId,
          signal: controller.signal,
          onAnswer: onAnswer(column),
        });
        if (keeps) await keep(column, { text: prompt, model: body.model, answer });
      }),
    );
  };
  const begin = (next: readonly Turn[] = [], kept: Record<number, string> = {}): void => {
    running.current?.abort();
    keptIds.current = kept;
    setKeepProblem(null);
    setTurns(next);
  };
  /** Goes on with a conversation that was kept; gives the model that it was with. */
  const open = async (id: string): Promise<string> => {
    const { messages, model } = await openConversation(id);
    const asked = messages.flatMap(({ role, content }, index) =>
      role === "user" ? [{ content, answer: messages[index + 1] }] : [],
    );
    const name = model ?? asked.at(-1)?.answer?.model ?? "";
    begin(
      asked.map(({ content, answer }) => ({
        text: content,
        message: { role: "user", content },
        models: [answer?.model ?? name],
        bodies: [],
        answers:
          answer?.role === "assistant"
            ? { 0: { text: answer.content, reasoning: "", calls: [], state: "done" as const } }
            : {},
      })),
      { 0: id },
    );
    return name;
  };
  return { turns, isBusy, keepProblem, ask, begin, open, stop: () => running.current?.abort() };
}
