type Fields = Readonly<Record<string, unknown>>;

/** An upstream's refusal of a request, in its own words. */
interface Refusal {
  code: string | null;
  message: string;
}

/** What an upstream cannot read: what its refusal is about, or seals that it refused before. */
export type Unreadable = { refusal: Refusal } | { isRefused(seal: string): boolean };

/** A request without the reasoning whose seals its upstream cannot read. */
export interface UnsealedRequest {
  text: string;
  /** The seals that were left out. */
  seals: readonly string[];
  /** Whether it no longer asks for reasoning, which the upstream allows only with those seals. */
  stopsThinking: boolean;
  /** Whether a summary of earlier turns is among them, which is all that was left of these. */
  lacksHistory?: boolean;
}

/** How a dialect writes the blocks of its turns. */
export interface TurnForm {
  /** Returns the seal of reasoning, empty where it has none; undefined for other blocks. */
  sealOf(block: Fields): string | undefined;
  isCall(block: Fields): boolean;
  isResult(block: Fields): boolean;
}

/** A conversation without reasoning that its upstream cannot read. */
interface UnsealedTurns {
  messages: readonly unknown[];
  seals: readonly string[];
  /** Whether calls under way have lost the reasoning that they were made with. */
  callsLackThoughts: boolean;
}

/**
 * Anthropic's words, which Bedrock and Google repeat, with or without the marks of code: a seal that
 * it cannot read, and thoughts that do not stand where it wrote them.
 */
const refusedWords = [
  /invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block/i,
  /thinking`? blocks in the latest assistant message cannot be modified/i,
];
const refusedPlace = /messages\.(\d+)\.content/;

/** Returns whether a refusal is about thoughts, as far as its words show. */
export const concernsThoughts = (unreadable: Unreadable): boolean =>
  !("refusal" in unreadable) ||
  refusedWords.some((words) => words.test(unreadable.refusal.message));

/**
 * Returns a conversation without the thinking that another vendor signed, as Messages and Converse
 * have it. The turn under way keeps its own, unless the refusal names it or no other is left.
 */
export function withoutThoughts(
  messages: readonly unknown[],
  unreadable: Unreadable,
  form: TurnForm,
): UnsealedTurns | undefined {
  const isGone =
    "refusal" in unreadable
      ? goneByRefusal(messages, { message: unreadable.refusal.message, form })
      : (seal: string): boolean => unreadable.isRefused(seal);
  const turn = turnUnderWay(messages, form);
  const seals: string[] = [];
  let callsLackThoughts = false;
  const kept = messages.map((each, index): unknown => {
    const content = contentOf(each);
    const spoken = content.filter((block) => {
      const seal = form.sealOf(block);
      const goes = seal !== undefined && isGone(seal, index);
      if (goes) seals.push(seal);
      return !goes;
    });
    if (spoken.length === content.length) return each;
    callsLackThoughts ||=
      index >= turn &&
      spoken.some((block) => form.isCall(block)) &&
      !spoken.some((block) => form.sealOf(block) !== undefined);
    return { ...(Object(each) as Fields), content: spoken };
  });
  return seals.length === 0
    ? undefined
    : { messages: kept.filter((each) => !isEmptied(each)), seals, callsLackThoughts };
}

/** Returns which reasoning goes by a refusal. */
function goneByRefusal(
  messages: readonly unknown[],
  { message, form }: { message: string; form: TurnForm },
): (seal: string, index: number) => boolean {
  const turn = turnUnderWay(messages, form);
  const hasEarlier = messages
    .slice(0, turn)
    .some((each) => contentOf(each).some((block) => form.sealOf(block) !== undefined));
  const named = Number(refusedPlace.exec(message)?.[1] ?? 0);
  const end = !hasEarlier || named >= turn ? messages.length : turn;
  return (_, index) => index < end;
}

/** Returns the blocks of a message; none where its content is a text. */
export function contentOf(message: unknown): readonly Fields[] {
  const { content } = Object(message) as Fields;
  return Array.isArray(content) ? content.map((block: unknown) => Object(block) as Fields) : [];
}

/** Returns whether a turn of the model's has no content left, which would be refused. */
export const isEmptied = (message: unknown): boolean => {
  const { role, content } = Object(message) as Fields;
  return role === "assistant" && Array.isArray(content) && content.length === 0;
};

/** Returns the index behind the user's last message, where the turn under way begins. */
export const turnUnderWay = (messages: readonly unknown[], form: TurnForm): number =>
  messages.findLastIndex(
    (message) =>
      (Object(message) as Fields)["role"] === "user" &&
      !contentOf(message).some((block) => form.isResult(block)),
  ) + 1;
