import { execute } from "../../../inference/pipeline/execute.ts";
import type { ServedStream } from "../../../inference/pipeline/stream/open-stream.ts";
import type { ServedWhole } from "../../../inference/pipeline/served-answer.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import type { RequestContext } from "../../../access/define-endpoint.ts";
import type { Reply } from "../../../http/reply.ts";
import { assert } from "../../../platform/kernel/assert.ts";
import { badField } from "../../../platform/kernel/errors.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";
import type { Dependencies } from "../../dependencies.ts";
import { answerCall, streamResponse, wholeResponse, wholeText } from "../answer-call.ts";
import { withPings } from "../responses/stored-response.ts";
import { chatFace } from "./chat/chat-face.ts";
import { ChatStream } from "./chat/chat-stream.ts";
import { ChatTurn } from "./chat/chat-turn.ts";
import { MessagesStream } from "./messages/messages-stream.ts";
import { MessagesTurn } from "./messages/messages-turn.ts";
import { withConnectorTools } from "./messages/connector-servers.ts";
import { messagesFace } from "./messages/messages-face.ts";
import {
  asksForConnector,
  asksForMcp,
  asksForParser,
  asksForSearch,
  isSearchTool,
} from "./asked-tools.ts";
import { DialogueRounds, type ToolFace, type Wire } from "./dialogue-rounds.ts";
import { chatFiles, messagesFiles, withParsedFiles } from "./file-parser.ts";
import { searchToolFor } from "./web-search.ts";
import { readGatewayTools, type GatewayTool } from "./gateway-tools.ts";
import { modelSees } from "./responses/serve-response.ts";

/** An answer in the making: what takes its rounds, whole, or as a stream. */
interface DialogueTurn {
  /** Takes a whole round; undefined where the model is to be asked again. */
  takeWhole(body: Wire): Promise<Wire | undefined>;
  /** Returns the frames of the stream that begins with the first round. */
  streamOf(options: {
    first: FrameSource;
    ask: () => Promise<FrameSource>;
    onCancel: () => void;
  }): FrameSource;
}

/** Serves a chat call, and runs the tools of MCP servers for its model where it asks for them. */
export function answerChat(
  context: RequestContext,
  sent: ChatCall,
  deps: ChatParts,
): Promise<Reply> {
  return asksForParser(sent.body)
    ? withParsedFiles(deps, { call: sent, face: chatFiles }).then(({ call }) =>
        answerParsedChat(context, call, deps),
      )
    : answerParsedChat(context, sent, deps);
}

/** What answering a chat needs, with tools that run here or without. */
type ChatParts = Pick<
  Dependencies,
  | "inference"
  | "documents"
  | "upstreamServers"
  | "toolCalls"
  | "maxToolRounds"
  | "search"
  | "hiddenTurns"
  | "clock"
  | "publicUrl"
>;

function answerParsedChat(
  context: RequestContext,
  call: ChatCall,
  deps: ChatParts,
): Promise<Reply> {
  const search = asksForSearch(deps, call.body) ? searchToolFor(deps, call) : undefined;
  if (search === undefined && !asksForMcp(call.body)) return answerCall(context, call, deps);
  const { n } = call.body;
  if (typeof n === "number" && n > 1)
    throw badField("n", "must be 1 with tools that the gateway runs");
  const face = chatFace(deps.hiddenTurns, call.caller.workspace.id);
  return answerDialogue(context, {
    call,
    deps,
    face,
    search,
    turnOf(rounds) {
      const turn = new ChatTurn(rounds, deps.hiddenTurns);
      return {
        takeWhole: (body) => turn.takeWhole(body),
        streamOf: (options) => new ChatStream({ ...options, turn, rounds }),
      };
    },
  });
}

/** Serves a call of Messages in the same way. Calls and results are blocks of the answer. */
export async function answerMessages(
  context: RequestContext,
  sent: ChatCall,
  deps: Pick<
    Dependencies,
    | "inference"
    | "documents"
    | "upstreamServers"
    | "toolCalls"
    | "maxToolRounds"
    | "search"
    | "clock"
    | "publicUrl"
  >,
): Promise<Reply> {
  const connected = asksForConnector(sent.body) ? withConnectorTools(deps, sent) : sent;
  const { call } = asksForParser(connected.body)
    ? await withParsedFiles(deps, { call: connected, face: messagesFiles })
    : { call: connected };
  const search = asksForSearch(deps, call.body) ? searchToolFor(deps, call) : undefined;
  if (search === undefined && !asksForMcp(call.body)) return answerCall(context, call, deps);
  return answerDialogue(context, {
    call,
    deps,
    face: messagesFace,
    search,
    turnOf(rounds) {
      const turn = new MessagesTurn(rounds);
      return {
        takeWhole: (body) => turn.takeWhole(body),
        streamOf: (options) => new MessagesStream({ ...options, turn, rounds }),
      };
    },
  });
}

/** Answers a request in rounds, between which tools run. Throws `GatewayError`. */
async function answerDialogue(
  context: RequestContext,
  {
    call,
    deps,
    face,
    search,
    turnOf,
  }: {
    call: ChatCall;
    deps: Pick<
      Dependencies,
      "inference" | "upstreamServers" | "toolCalls" | "maxToolRounds" | "clock" | "publicUrl"
    >;
    face: ToolFace;
    search: GatewayTool | undefined;
    turnOf(rounds: DialogueRounds): DialogueTurn;
  },
): Promise<Reply> {
  const aborting = new AbortController();
  const requested = (call.body["tools"] ?? []) as Wire[];
  const tools = await readGatewayTools(deps, {
    tools: requested,
    caller: call.caller,
    taken: new Set(requested.filter((tool) => !isSearchTool(tool)).flatMap(nameOf)),
    search,
  });
  const rounds = new DialogueRounds(face, {
    call,
    tools,
    deps,
    maxRounds: deps.maxToolRounds,
    signal: AbortSignal.any([aborting.signal, ...(call.signalOf ? [call.signalOf()] : [])]),
    seesPictures: modelSees(deps, call),
  });
  await rounds.begin();
  const turn = turnOf(rounds);
  if (!call.requirements.stream) return wholeDialogue(context, { deps, rounds, turn });
  const ask = async (): Promise<ServedStream> => {
    const served = await execute(deps.inference, rounds.nextCall());
    assert(served.kind === "stream", "a round of a streamed answer is streamed");
    return served;
  };
  const served = await ask();
  const stream = turn.streamOf({
    first: served.stream,
    ask: async () => (await ask()).stream,
    onCancel: () => aborting.abort(),
  });
  const frames = withPings(stream, { keepAlive: deps.inference.keepAlive, atOnce: false });
  return streamResponse(context, { served, nowMs: deps.clock.monotonicMs(), frames });
}

/** Returns the name of a client's own function, in chat or Messages. */
function nameOf(tool: Wire): string[] {
  const { name } = (tool["function"] ?? tool) as { name?: unknown };
  return typeof name === "string" ? [name] : [];
}

async function wholeDialogue(
  context: RequestContext,
  {
    deps,
    rounds,
    turn,
  }: { deps: Pick<Dependencies, "inference">; rounds: DialogueRounds; turn: DialogueTurn },
): Promise<Reply> {
  for (;;) {
    const call = rounds.nextCall();
    const served: ServedWhole | ServedStream = await execute(deps.inference, call);
    assert(served.kind === "whole", "a round of a whole answer is whole");
    const body = await turn.takeWhole(JSON.parse(wholeText(served, call)) as Wire);
    if (body === undefined) continue;
    const { chargedNano } = rounds.usage;
    return wholeResponse(context, {
      served: { ...served, settled: { ...served.settled, chargedNano } },
      call,
      text: JSON.stringify(body),
    });
  }
}
