import type { ChatQuestion } from "../chat-question.ts";
import type { Verdict } from "./categories.ts";

/** How a family of guard models is asked, and what its words mean. */
export interface GuardFormat {
  /** The questions that one text takes; for most families one. */
  questions(text: string): readonly ChatQuestion[];
  /** What the reply to one of the questions says; undefined when it says nothing that the family says. */
  read(reply: string, question: number): Verdict | undefined;
  /** Tokens that the questions to one text have beside it, those of the model's own template included. */
  promptTokens: number;
}
