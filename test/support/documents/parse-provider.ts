/** A request that the provider received. */
interface ParseQuestion {
  path: string;
  body: string;
  authorization: string | null;
  idempotencyKey: string | null;
}

/** The provider's reaction to a request. */
export type ParseAct = (question: ParseQuestion) => Response | Promise<Response>;

/** A provider that parses documents, on loopback. */
export interface ParseProvider {
  baseUrl: string;
  questions: ParseQuestion[];
  /** Sets the reactions to the next requests, one each; the last one serves all later requests. */
  will(...acts: ParseAct[]): void;
  stop(): void;
}

/** Returns a promise and the function that resolves it, for answers that wait for the test. */
export function gate(): { opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** Starts a provider that answers as `will` says. */
export function startParseProvider(): ParseProvider {
  const questions: ParseQuestion[] = [];
  let acts: ParseAct[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { headers } = request;
      const question = {
        path: pathname + search,
        body: await request.text(),
        authorization: headers.get("authorization"),
        idempotencyKey: headers.get("idempotency-key"),
      };
      questions.push(question);
      const act = acts.length > 1 ? acts.shift() : acts[0];
      return act === undefined ? new Response("nothing to do", { status: 500 }) : act(question);
    },
  });
  return {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    questions,
    will: (...next) => void (acts = next),
    stop: () => void server.stop(true),
  };
}
