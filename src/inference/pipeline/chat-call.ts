import type { CanonicalRequest } from "../canonical/request.ts";
import type { ClientDialect } from "../dialects/dialect.ts";
import {
  estimateInputTokens,
  mayUsePart,
  parametersOf,
  wishesOf,
  type RequirementReader,
} from "../dialects/requirements.ts";
import type {
  CallOrigin,
  CallSignature,
  ChatCall,
  ClientRequest,
  RequestAsks,
  WorkspaceSignatures,
} from "./inference-call.ts";
import { adapt } from "./adapt.ts";
import type { UsagePart } from "../../platform/kernel/usage.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { CatalogModel } from "../catalog/model.ts";

/** A chat-shaped request as its route has read it. */
interface ReadChat
  extends Pick<ClientRequest, "text" | "body" | "dialectHeaders" | "signatures" | "nowSeconds"> {
  dialect: ClientDialect;
  presetId: string | undefined;
}

/**
 * The call of a chat-shaped request. Members are named one by one: copying objects of this size
 * costs a microsecond.
 */
export function chatCall(origin: CallOrigin, read: ReadChat): ChatCall {
  const { dialect } = read;
  let canonical: CanonicalRequest | undefined;
  const call: ChatCall = {
    traceId: origin.traceId,
    generationId: origin.generationId,
    shownId: origin.shownId,
    caller: origin.caller,
    startedMs: origin.startedMs,
    signalOf: origin.signalOf,
    wantsBalance: origin.wantsBalance,
    forcedProviders: origin.forcedProviders,
    tokensUsed: origin.tokensUsed,
    sessionId: origin.sessionId,
    origin: origin.origin,
    appTitle: origin.appTitle,
    traceParent: origin.traceParent,
    dialect: dialect.id,
    text: read.text,
    body: read.body,
    dialectHeaders: read.dialectHeaders,
    signatures: read.signatures,
    nowSeconds: read.nowSeconds,
    canonical: () => (canonical ??= dialect.decodeRequest(read.body)),
    surface: "chat",
    recordedAs: dialect.recordedAs,
    presetId: read.presetId,
    asks: chatAsks(dialect, read),
    adapt: (route) => adapt(call, route),
    assertServes: assertServesChat,
  };
  return call;
}

/** A request's body and its text. */
type AskingRequest = Pick<ClientRequest, "body" | "text">;

/**
 * What a chat-shaped request asks for; what few requests need is worked out when it is asked for.
 */
class ChatAsks implements RequestAsks {
  readonly stream: boolean;
  readonly maxOutputTokens: number | undefined;
  readonly thinks: boolean | undefined;
  readonly thoughtTokens: number | undefined;
  readonly thoughtBudget: number | undefined;
  readonly neededOutputTokens: number | undefined;
  readonly wishedOutputTokens: number | undefined;
  readonly choices: number;
  readonly wishedParameters: readonly string[];
  readonly needsTools: boolean;
  private readonly reader: RequirementReader;
  private readonly request: AskingRequest;

  constructor(reader: RequirementReader, request: AskingRequest) {
    const { body } = request;
    this.reader = reader;
    this.request = request;
    this.stream = body["stream"] === true;
    this.maxOutputTokens = reader.outputCap(body);
    this.thinks = reader.thinks(body);
    this.thoughtTokens = reader.thoughtTokens(body, this.thinks);
    this.thoughtBudget = reader.thoughtBudget(body, this.thoughtTokens);
    const isNeeded = reader.capChoosesRoutes === true;
    this.neededOutputTokens = isNeeded ? this.maxOutputTokens : undefined;
    this.wishedOutputTokens = isNeeded ? undefined : this.maxOutputTokens;
    this.choices = reader.choices(body);
    this.wishedParameters = wishesOf(reader, body);
    this.needsTools = reader.needsTools(body);
  }

  parameters(): string[] {
    return parametersOf(this.reader, this.request.body);
  }

  mayUse(part: UsagePart): boolean {
    return mayUsePart(this.request, part);
  }

  estimateInputTokens(): number {
    return estimateInputTokens(this.request.text, this.request.body);
  }
}

/** What a chat-shaped request asks for. */
export const chatAsks = (
  { requirements }: Pick<ClientDialect, "requirements">,
  request: AskingRequest,
): RequestAsks => new ChatAsks(requirements, request);

/** Chat-shaped routes serve chat models alone. */
export function assertServesChat({ id, surface }: CatalogModel): void {
  if (surface === "chat") return;
  const message = `The model ${id} does not chat; it serves ${surface}. Call that endpoint, or another model.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

/** Calls whose signatures are kept: some hundred bytes each, and an agent's turn has a few. */
const keptMax = 20_000;

/**
 * Signatures that providers put on tool calls (Gemini) and want to see again, for clients whose
 * dialect has no place for them. In memory and bounded: where one is gone, the request goes out
 * without it, which costs the model its thought and nothing else.
 */
export class CallSignatures {
  private readonly kept = new Map<string, CallSignature>();

  /**
   * The signatures of one workspace's calls, since ids of calls are the providers' and no secret.
   */
  of(workspaceId: string): WorkspaceSignatures {
    return new SignaturesOfWorkspace(this, workspaceId);
  }

  find(key: string): CallSignature | undefined {
    return this.kept.get(key);
  }

  keep(key: string, signature: CallSignature): void {
    this.kept.delete(key);
    this.kept.set(key, signature);
    if (this.kept.size <= keptMax) return;
    for (const oldest of this.kept.keys()) {
      this.kept.delete(oldest);
      break;
    }
  }
}

class SignaturesOfWorkspace implements WorkspaceSignatures {
  private readonly all: CallSignatures;
  private readonly workspaceId: string;

  constructor(all: CallSignatures, workspaceId: string) {
    this.all = all;
    this.workspaceId = workspaceId;
  }

  keep(callId: string, signature: CallSignature): void {
    this.all.keep(`${this.workspaceId} ${callId}`, signature);
  }

  find(callId: string): CallSignature | undefined {
    return this.all.find(`${this.workspaceId} ${callId}`);
  }
}
